/** The tools that there are, to choose from while writing a name. */
import { useId } from "preact/hooks";
import type { ToolSummary } from "toolyard-client";
import { hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { TextField } from "../../ui/field";

export function useToolNames(): readonly ToolSummary[] {
  return useResource<{ data: ToolSummary[] }>(hasScope("tools") ? "/v1/tool-summaries" : null).value?.data ?? [];
}

export function SuggestField({
  label,
  value,
  onInput,
  names,
  help,
  required,
}: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  names: readonly string[];
  help?: string;
  required?: boolean;
}) {
  const id = useId();
  return (
    <>
      <TextField
        label={label}
        help={help}
        required={required}
        list={id}
        autocomplete="off"
        value={value}
        onInput={onInput}
      />
      <datalist id={id}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

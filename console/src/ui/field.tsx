/** A field with its name, its help and its problem, tied together for those who do not see them. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "./icon";

interface Around {
  label: ComponentChildren;
  help?: ComponentChildren;
  problem?: ComponentChildren;
  required?: boolean;
}

export function Field({
  label,
  help,
  problem,
  required,
  children,
}: Around & {
  children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: true }) => ComponentChildren;
}) {
  const id = useId();
  const about = [help ? `${id}-h` : "", problem ? `${id}-p` : ""].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>
        {label}
        {required && (
          <span class="must" aria-hidden="true">
            {" "}
            *
          </span>
        )}
      </label>
      {children({
        id,
        ...(about ? { "aria-describedby": about } : {}),
        ...(problem ? { "aria-invalid": true as const } : {}),
      })}
      {help && (
        <div class="faint" id={`${id}-h`}>
          {help}
        </div>
      )}
      {problem && (
        <div class="problem" id={`${id}-p`} role="alert">
          {problem}
        </div>
      )}
    </div>
  );
}

type Input = Around & {
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "number" | "url" | "date" | "datetime-local";
  placeholder?: string;
  autocomplete?: string;
  min?: number | string;
  max?: number | string;
  step?: number | string;
  disabled?: boolean;
  list?: string;
};
export function TextField({ label, help, problem, value, onInput, required, ...rest }: Input) {
  return (
    <Field label={label} help={help} problem={problem} required={required}>
      {(ids) => (
        <input
          type="text"
          dir="auto"
          {...(rest as { type?: "text" })}
          {...ids}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function TextArea({
  label,
  help,
  problem,
  value,
  onInput,
  required,
  rows = 4,
  mono = false,
  placeholder,
  disabled,
}: Around & {
  value: string;
  onInput: (value: string) => void;
  rows?: number;
  mono?: boolean;
  placeholder?: string;
  disabled?: boolean;
}) {
  return (
    <Field label={label} help={help} problem={problem} required={required}>
      {(ids) => (
        <textarea
          {...ids}
          class={mono ? "mono" : ""}
          rows={rows}
          dir={mono ? undefined : "auto"}
          placeholder={placeholder}
          disabled={disabled}
          spellcheck={!mono}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function Select({
  label,
  help,
  problem,
  value,
  onInput,
  options,
  required,
  disabled,
}: Around & {
  value: string;
  onInput: (value: string) => void;
  disabled?: boolean;
  options: readonly { value: string; name: string; given?: boolean }[];
}) {
  return (
    <Field label={label} help={help} problem={problem} required={required}>
      {(ids) => (
        <select {...ids} value={value} disabled={disabled} onInput={(event) => onInput(event.currentTarget.value)}>
          {options.map((one) => (
            <option key={one.value} value={one.value} data-given={one.given || undefined}>
              {one.name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Switch({
  label,
  on,
  onSwitch,
  help,
  disabled,
}: {
  label: ComponentChildren;
  on: boolean;
  onSwitch: (on: boolean) => void;
  help?: ComponentChildren;
  disabled?: boolean;
}) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        checked={on}
        disabled={disabled}
        onChange={(event) => onSwitch(event.currentTarget.checked)}
      />
      <i aria-hidden="true" />
      <span>
        {label}
        {help && <span class="faint"> {help}</span>}
      </span>
    </label>
  );
}

export function Search({ value, onInput, label }: { value: string; onInput: (value: string) => void; label: string }) {
  return (
    <div class="search">
      <Icon sign="search" size={16} />
      <input
        type="search"
        data-search
        dir="auto"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  );
}

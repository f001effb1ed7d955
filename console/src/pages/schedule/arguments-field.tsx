/** The arguments of the call: a form from the schema, or the same as JSON. */
import { useSignal } from "@preact/signals";
import { TextArea } from "../../ui/field";
import { SchemaForm, type Help, type Problems, type Schema, type Values } from "../../ui/schema-form";
import type { Command } from "../../ui/schema/command";
import { Tabs } from "../../ui/tabs";
import { scheduleWords as words } from "./words";

export function ArgumentsField({
  schema,
  commands,
  help,
  value,
  onValue,
  problems,
}: {
  schema: Schema;
  commands: readonly Command[];
  help: Help;
  value: Values;
  onValue: (value: Values, isRight: boolean) => void;
  problems: Problems;
}) {
  const t = words();
  const as = useSignal<"form" | "json">("form");
  const text = useSignal("");
  const bad = useSignal(false);
  const open = (next: "form" | "json") => {
    if (next === "json") text.value = JSON.stringify(value, null, 2);
    else if (bad.value) onValue(value, true);
    bad.value = false;
    as.value = next;
  };
  const write = (next: string) => {
    text.value = next;
    const read = objectIn(next);
    bad.value = read === null;
    onValue(read ?? value, read !== null);
  };
  return (
    <div class="stack">
      <Tabs
        label={t.argumentsAs}
        open={as.value}
        onOpen={open}
        tabs={[
          { id: "form", name: t.form },
          { id: "json", name: t.json },
        ]}
      />
      {as.value === "form" ? (
        <SchemaForm
          schema={schema}
          commands={commands}
          value={value}
          onValue={(next) => onValue(next, true)}
          problems={problems}
          help={help}
        />
      ) : (
        <TextArea
          mono
          rows={8}
          label={t.arguments}
          problem={bad.value ? t.badJson : ""}
          value={text.value}
          onInput={write}
        />
      )}
    </div>
  );
}

function objectIn(text: string): Values | null {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Values) : null;
  } catch {
    return null;
  }
}

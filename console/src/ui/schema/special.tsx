/** Fields for text that is more than text: a secret, a date or time, the content of a file. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { formatBytes } from "../../lib/clock";
import { readUri } from "../../lib/file-uri";
import { Button, IconButton } from "../button";
import { Field } from "../field";
import { fromLocalTime, toLocalTime, type TimeKind } from "./local-time";
import { describeField, ForeignText, type FieldProps } from "./simple";
import { schemaWords } from "./words";

/** A secret: dots, until somebody wants to see it. */
export function SecretInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const isShown = useSignal(false);
  const { help, hint } = describeField(schema);
  return (
    <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
      {(ids) => (
        <div class="schema-row">
          <input
            {...ids}
            data-given
            {...({ type: isShown.value ? "text" : "password" } as { type: "password" })}
            class="mono"
            autocomplete="new-password"
            spellcheck={false}
            placeholder={hint}
            value={typeof value === "string" ? value : ""}
            onInput={(event) => onValue(event.currentTarget.value || undefined)}
          />
          <IconButton
            label={`${isShown.value ? t.conceal : t.reveal} ${name}`}
            sign="eye"
            kind="plain"
            pressed={isShown.value}
            onClick={() => (isShown.value = !isShown.value)}
          />
        </div>
      )}
    </Field>
  );
}

const INPUTS = { date: "date", time: "time", "date-time": "datetime-local" } as const;

/** A date or time, chosen in the reader's own zone. Text that is none is shown as it is, to be put right. */
export function DateInput({ name, schema, value, onValue, required, problem, kind }: FieldProps & { kind: TimeKind }) {
  const t = schemaWords();
  const { help, hint } = describeField(schema);
  const text = typeof value === "string" ? value : "";
  const local = toLocalTime(kind, text);
  const zone = kind === "date-time" && t.localTime(Intl.DateTimeFormat().resolvedOptions().timeZone);
  return (
    <Field
      label={<ForeignText text={name} />}
      help={
        <>
          {help}
          {help && zone && " · "}
          {zone}
        </>
      }
      problem={problem}
      required={required}
    >
      {(ids) =>
        text && local === null ? (
          <input
            {...ids}
            data-given
            type="text"
            class="schema-short"
            value={text}
            onInput={(event) => onValue(event.currentTarget.value || undefined)}
          />
        ) : (
          <input
            {...ids}
            type={INPUTS[kind]}
            class="schema-short"
            title={hint || undefined}
            value={local ?? ""}
            onInput={(event) => onValue(fromLocalTime(kind, event.currentTarget.value) || undefined)}
          />
        )
      }
    </Field>
  );
}

/** The content of a file of this device: as base64, or as a data URI where the schema says so. */
export function FileInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const { help } = describeField(schema);
  const file = useSignal("");
  const picker = useRef<HTMLInputElement>(null);
  const text = typeof value === "string" ? value : "";
  const choose = async (chosen: File) => {
    const uri = await readUri(chosen);
    onValue(/^data-ur[il]$/i.test(schema.format ?? "") ? uri : uri.slice(uri.indexOf(",") + 1));
    file.value = chosen.name;
  };
  return (
    <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
      {(ids) => (
        <div class="schema-row">
          <input
            {...ids}
            ref={picker}
            type="file"
            class="hush"
            tabIndex={-1}
            onChange={(event) => {
              const chosen = event.currentTarget.files?.[0];
              if (chosen) void choose(chosen);
            }}
          />
          <Button sign="attach" onClick={() => picker.current?.click()}>
            {text ? t.anotherFile : t.chooseFile}
            <span class="hush" data-given>
              {" "}
              {name}
            </span>
          </Button>
          {text && (
            <>
              <span class="faint cut grow" title={file.value} data-given>
                {[file.value, formatBytes(sizeOf(text))].filter(Boolean).join(" · ")}
              </span>
              <IconButton
                label={t.removeFile}
                sign="close"
                onClick={() => {
                  file.value = "";
                  if (picker.current) picker.current.value = "";
                  onValue(undefined);
                }}
              />
            </>
          )}
        </div>
      )}
    </Field>
  );
}

/** The number of bytes that a base64 text, or the one in a data URI, stands for. */
function sizeOf(text: string): number {
  return Math.floor(((text.length - text.indexOf(",") - 1) * 3) / 4) - (/=*$/.exec(text)?.[0].length ?? 0);
}

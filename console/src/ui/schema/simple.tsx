/** Fields for one plain value: text, number, choice of values, yes or no. Undefined means: not sent. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "../button";
import { revealHidden } from "../../lib/hidden-characters";
import { Field, Switch } from "../field";
import type { Json, Kind, Schema } from "./shape";
import { schemaWords } from "./words";

export interface FieldProps {
  name: string;
  schema: Schema;
  value: Json | undefined;
  onValue: (value: Json | undefined) => void;
  required: boolean;
  problem?: string;
}

/** Words of the schema, which are not our own: shown with nothing hidden. */
export function ForeignText({ text }: { text: string }) {
  return <span data-given>{revealHidden(text)}</span>;
}

/** The help text under a field, and the placeholder of an empty one. */
export function describeField(schema: Schema): { help: ComponentChildren; hint: string } {
  const t = schemaWords();
  const low = schema.minimum ?? schema.exclusiveMinimum,
    high = schema.maximum ?? schema.exclusiveMaximum;
  const range =
    low !== undefined && high !== undefined
      ? t.range(String(low), String(high))
      : low !== undefined
        ? `≥ ${low}`
        : high !== undefined
          ? `≤ ${high}`
          : "";
  const example = schema.examples?.[0];
  const hint =
    schema.default !== undefined && schema.default !== ""
      ? t.byDefault(formatValue(schema.default))
      : example !== undefined
        ? `${t.example} ${formatValue(example)}`
        : "";
  const help = (schema.description || range) && (
    <>
      {schema.description && <ForeignText text={schema.description} />}
      {schema.description && range && " · "}
      {range}
    </>
  );
  return { help, hint };
}

function formatValue(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Text. An empty field is not sent; where empty text means something, a person can say so. */
export function TextInput({ name, schema, value, onValue, required, problem, long }: FieldProps & { long: boolean }) {
  const t = schemaWords();
  const { help, hint } = describeField(schema);
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  const mayBeEmpty = required && !schema.minLength && !schema.enum;
  const put = (typed: string) => onValue(typed === "" ? undefined : typed);
  const placeholder = value === "" ? t.emptySent : hint;
  return (
    <div class="schema-text">
      <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
        {(ids) =>
          long ? (
            <textarea
              {...ids}
              data-given
              class="mono schema-long"
              rows={3}
              spellcheck={false}
              placeholder={placeholder}
              value={text}
              onInput={(event) => put(event.currentTarget.value)}
            />
          ) : (
            <input
              {...ids}
              data-given
              type="text"
              autocomplete="off"
              spellcheck={false}
              placeholder={placeholder}
              value={text}
              onInput={(event) => put(event.currentTarget.value)}
            />
          )
        }
      </Field>
      {problem && mayBeEmpty && value === undefined && (
        <Button kind="quiet" onClick={() => onValue("")}>
          {t.emptyText}
        </Button>
      )}
    </div>
  );
}

/** A number. What is typed stays as typed; what is no number yet is kept as text, and told. */
export function NumberInput({ name, schema, value, onValue, required, problem, kind }: FieldProps & { kind: Kind }) {
  const typed = useSignal(value === undefined ? "" : formatValue(value));
  useEffect(() => {
    const same =
      value === undefined
        ? typed.peek().trim() === ""
        : typed.peek() === value || (typed.peek().trim() !== "" && Number(typed.peek()) === value);
    if (!same) typed.value = value === undefined ? "" : formatValue(value);
  }, [typed, value]);
  const { help, hint } = describeField(schema);
  const put = (text: string) => {
    typed.value = text;
    const number = Number(text);
    if (text.trim() === "") onValue(undefined);
    else onValue(Number.isFinite(number) && /^[\s\d.+\-eE]+$/.test(text) ? number : text);
  };
  return (
    <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
      {(ids) => (
        <input
          {...ids}
          data-given
          type="text"
          inputMode={kind === "integer" ? "numeric" : kind === "number" ? "decimal" : "text"}
          autocomplete="off"
          class="schema-short"
          placeholder={hint}
          value={typed.value}
          onInput={(event) => put(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function EnumInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const options = schema.enum ?? [];
  const at = value === undefined ? -1 : options.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  const none = schema.default !== undefined ? t.byDefault(formatValue(schema.default)) : t.notSet;
  return (
    <Field
      label={<ForeignText text={name} />}
      help={schema.description && <ForeignText text={schema.description} />}
      problem={problem}
      required={required}
    >
      {(ids) => (
        <select
          {...ids}
          class="schema-short"
          value={String(at)}
          onInput={(event) => onValue(options[Number(event.currentTarget.value)])}
        >
          <option value="-1">{required && schema.default === undefined ? "–" : none}</option>
          {options.map((one, n) => (
            <option key={n} value={String(n)} data-given>
              {formatValue(one)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function BooleanInput({ name, schema, value, onValue, problem }: FieldProps) {
  const on = typeof value === "boolean" ? value : schema.default === true;
  return (
    <div class="schema-switch" data-given>
      <Switch
        label={<ForeignText text={name} />}
        on={on}
        onSwitch={onValue}
        help={schema.description && revealHidden(schema.description)}
      />
      {problem && (
        <div class="problem" role="alert">
          {problem}
        </div>
      )}
    </div>
  );
}

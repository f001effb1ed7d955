/** Fields that hold others: objects, lists, a choice between kinds of value, and free JSON. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { toText } from "../../lib/text";
import { useEvent } from "../../lib/use-event";
import { Button, IconButton } from "../button";
import { Field } from "../field";
import { AnyField, ObjectFields, type FormContext } from "./any";
import { isValid } from "./check";
import { initialValue, isObject, resolveSchema, shapeOf, type Json, type Schema } from "./shape";
import { ForeignText, type FieldProps } from "./simple";
import { schemaWords, typeWord } from "./words";

export function ObjectInput({
  name,
  schema,
  value,
  onValue,
  required,
  problem,
  around,
  path,
}: FieldProps & { around: FormContext; path: string }) {
  return (
    <fieldset class="schema-group">
      <legend>
        <ForeignText text={name} />
        {required && (
          <span class="must" aria-hidden="true">
            {" "}
            *
          </span>
        )}
      </legend>
      {schema.description && (
        <p class="faint">
          <ForeignText text={schema.description} />
        </p>
      )}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <ObjectFields
        schema={schema}
        value={isObject(value) ? value : {}}
        onValue={(next) => onValue(required || Object.keys(next).length ? next : undefined)}
        around={around}
        path={`${path}/`}
      />
    </fieldset>
  );
}

export function ListInput({
  name,
  schema,
  value,
  onValue,
  required,
  problem,
  around,
  path,
}: FieldProps & { around: FormContext; path: string }) {
  const t = schemaWords();
  const items = Array.isArray(value) ? value : [];
  const item = resolveSchema(schema.items, around.root);
  const kind = shapeOf(item, around.root).kind;
  const nothing: Json = kind === "object" ? {} : kind === "array" ? [] : ""; // an item stays in its place also when it is emptied
  const put = (next: Json[]) => onValue(next.length || required ? next : undefined);
  return (
    <fieldset class="schema-group">
      <legend>
        <ForeignText text={name} />
        {required && (
          <span class="must" aria-hidden="true">
            {" "}
            *
          </span>
        )}
      </legend>
      {schema.description && (
        <p class="faint">
          <ForeignText text={schema.description} />
        </p>
      )}
      {items.map((one, n) => (
        <div class="schema-item" key={n}>
          <div class="grow">
            <AnyField
              name={t.item(name, n + 1)}
              schema={item}
              value={one}
              onValue={(next) => put(items.map((old, m) => (m === n ? (next === undefined ? nothing : next) : old)))}
              required={false}
              around={around}
              path={`${path}/${n}`}
            />
          </div>
          <IconButton
            label={t.removeItem(t.item(name, n + 1))}
            sign="trash"
            onClick={() => put(items.filter((_, m) => m !== n))}
          />
        </div>
      ))}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div>
        <Button sign="plus" title={t.addTo(name)} onClick={() => put([...items, initialValue(item, around.root)])}>
          {t.add}
          <span class="hush" data-given>
            {" "}
            {name}
          </span>
        </Button>
      </div>
    </fieldset>
  );
}

/** A value of one of several kinds. The kind follows the value; choosing another begins anew, and nothing yet (in a
 * list: empty text) is of the kind that was chosen. */
export function ChoiceInput({
  name,
  schema,
  variants,
  value,
  onValue,
  required,
  problem,
  around,
  path,
}: FieldProps & { variants: Schema[]; around: FormContext; path: string }) {
  const t = schemaWords();
  const chosen = useSignal(
    Math.max(0, value === undefined ? 0 : variants.findIndex((one) => isValid(one, value, around.root))),
  );
  const follow = useEvent((next: Json | undefined) => {
    if (next === undefined || next === "" || isValid(variants[chosen.peek()] ?? {}, next, around.root)) return;
    const at = variants.findIndex((one) => isValid(one, next, around.root));
    if (at >= 0) chosen.value = at;
  });
  useEffect(() => follow(value), [follow, value]);
  const variant = variants[chosen.value] ?? {};
  return (
    <div class="schema-choice">
      <select
        class="schema-kind"
        data-given
        aria-label={t.kindOf(name)}
        value={String(chosen.value)}
        onInput={(event) => {
          chosen.value = Number(event.currentTarget.value);
          onValue(undefined);
        }}
      >
        {variants.map((one, n) => (
          <option key={n} value={String(n)}>
            {typeWord(one.title ?? toText(one.type ?? one.const ?? n + 1))}
          </option>
        ))}
      </select>
      <AnyField
        key={chosen.value}
        name={name}
        schema={{ ...variant, title: undefined, description: variant.description ?? schema.description }}
        value={value}
        onValue={onValue}
        required={required}
        problem={problem}
        around={around}
        path={path}
      />
    </div>
  );
}

/** Anything, as JSON. Text that is no JSON yet is told; it is the value all the same, so that no older one is sent. */
export function JsonInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const typed = useSignal(formatJson(value));
  const bad = useSignal(typed.peek() !== "" && parseJson(typed.peek()) === undefined);
  useEffect(() => {
    if (typed.peek() === value || JSON.stringify(parseJson(typed.peek())) === JSON.stringify(value)) return;
    typed.value = formatJson(value);
    bad.value = false;
  }, [bad, typed, value]);
  const put = (text: string) => {
    typed.value = text;
    const read = parseJson(text);
    bad.value = text.trim() !== "" && read === undefined;
    onValue(bad.value ? text : read);
  };
  return (
    <Field
      label={<ForeignText text={name} />}
      help={schema.description && <ForeignText text={schema.description} />}
      problem={bad.value ? (schema.type ? t.notJson : t.asText) : problem}
      required={required}
    >
      {(ids) => (
        <textarea
          {...ids}
          class="mono schema-long"
          rows={2}
          spellcheck={false}
          placeholder={schema.type === "array" ? "[]" : schema.type === "object" ? "{}" : "JSON"}
          value={typed.value}
          onInput={(event) => put(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Parses a text as JSON; undefined if it is empty or invalid. */
function parseJson(text: string): Json | undefined {
  try {
    return text.trim() ? (JSON.parse(text) as Json) : undefined;
  } catch {
    return undefined;
  }
}

function formatJson(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" && value.trim() && parseJson(value) === undefined
    ? value
    : JSON.stringify(value, null, 2);
}

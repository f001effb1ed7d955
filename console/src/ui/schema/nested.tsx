/** Fields that hold others: objects, lists, maps, some of several values, a choice between kinds, and free JSON. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { toText } from "../../lib/text";
import { useEvent } from "../../lib/use-event";
import { Button, IconButton } from "../button";
import { Field } from "../field";
import { AnyField, ObjectFields, type FormContext } from "./any";
import { findVariant, isValid } from "./check";
import {
  discriminatorOf,
  fixedValues,
  initialValue,
  isObject,
  onlyValue,
  resolveSchema,
  shapeOf,
  type Json,
  type Schema,
  type Values,
} from "./shape";
import { ForeignText, type FieldProps } from "./simple";
import { schemaWords, typeWord } from "./words";

function Legend({ name, required }: { name: string; required: boolean }) {
  return (
    <legend>
      <ForeignText text={name} />
      {required && (
        <span class="must" aria-hidden="true">
          {" "}
          *
        </span>
      )}
    </legend>
  );
}

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
  const fixed = fixedValues(schema, around.root);
  const hasMore = (next: Values) => Object.keys(next).some((own) => !Object.hasOwn(fixed, own));
  return (
    <fieldset class="schema-group">
      <Legend name={name} required={required} />
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
        onValue={(next) => onValue(required || hasMore(next) ? next : undefined)}
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
      <Legend name={name} required={required} />
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

/** Some of a few known values. */
export function SeveralInput({
  name,
  schema,
  value,
  onValue,
  required,
  problem,
  around,
}: FieldProps & { around: FormContext }) {
  const chosen = Array.isArray(value) ? value : [];
  const options = resolveSchema(schema.items, around.root).enum ?? [];
  const has = (option: Json) => chosen.some((one) => JSON.stringify(one) === JSON.stringify(option));
  const toggle = (option: Json, on: boolean) => {
    const next = options.filter((one) => (one === option ? on : has(one)));
    onValue(next.length || required ? next : undefined);
  };
  return (
    <fieldset class="schema-group schema-several">
      <Legend name={name} required={required} />
      {schema.description && (
        <p class="faint">
          <ForeignText text={schema.description} />
        </p>
      )}
      <div class="schema-options">
        {options.map((option, n) => (
          <label key={n} class="check" data-given>
            <input
              type="checkbox"
              checked={has(option)}
              aria-invalid={problem ? true : undefined}
              onChange={(event) => toggle(option, event.currentTarget.checked)}
            />
            <span>{toText(option)}</span>
          </label>
        ))}
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </fieldset>
  );
}

/** Values by name, where any name may be added. */
export function MapInput({
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
  const key = useSignal("");
  const values = isObject(value) ? value : {};
  const item = resolveSchema(schema.additionalProperties, around.root);
  const put = (next: Values) => onValue(Object.keys(next).length || required ? next : undefined);
  const add = () => {
    const added = key.value.trim();
    if (!added || Object.hasOwn(values, added)) return;
    key.value = "";
    put({ ...values, [added]: initialValue(item, around.root) });
  };
  return (
    <fieldset class="schema-group">
      <Legend name={name} required={required} />
      {schema.description && (
        <p class="faint">
          <ForeignText text={schema.description} />
        </p>
      )}
      {Object.entries(values).map(([own, one]) => (
        <div class="schema-item" key={own}>
          <div class="grow">
            <AnyField
              name={own}
              schema={item}
              value={one}
              onValue={(next) => put({ ...values, [own]: next ?? "" })}
              required={false}
              around={around}
              path={`${path}/${own}`}
            />
          </div>
          <IconButton
            label={t.removeItem(own)}
            sign="trash"
            onClick={() => put(Object.fromEntries(Object.entries(values).filter(([other]) => other !== own)))}
          />
        </div>
      ))}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="schema-row">
        <input
          type="text"
          class="mono"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-label={t.newKey(name)}
          placeholder={t.newKey(name)}
          value={key.value}
          onInput={(event) => (key.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
            event.preventDefault();
            add();
          }}
        />
        <Button sign="plus" disabled={!key.value.trim() || Object.hasOwn(values, key.value.trim())} onClick={add}>
          {t.addKey}
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
  const tag = discriminatorOf(variants);
  const chosen = useSignal(Math.max(0, value === undefined ? 0 : findVariant(variants, value, around.root)));
  const follow = useEvent((next: Json | undefined) => {
    if (next === undefined || next === "" || isValid(variants[chosen.peek()] ?? {}, next, around.root)) return;
    const at = findVariant(variants, next, around.root);
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
          const begun = initialValue(variants[chosen.value], around.root);
          onValue(isObject(begun) && Object.keys(begun).length ? begun : undefined);
        }}
      >
        {variants.map((one, n) => (
          <option key={n} value={String(n)}>
            {typeWord(one.title ?? toText((tag && onlyValue(one.properties?.[tag])) ?? one.type ?? one.const ?? n + 1))}
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

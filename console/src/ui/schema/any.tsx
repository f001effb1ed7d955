/** One field of any schema, and the fields of an object: needed ones first, the others folded. */
import { useSignal } from "@preact/signals";
import { Switch } from "../field";
import type { Problems } from "./check";
import { ChoiceInput, JsonInput, ListInput, MapInput, ObjectInput, SeveralInput } from "./nested";
import { PathInput } from "./path";
import { fieldsOf, fixedValues, shapeOf, type Json, type Schema, type Values } from "./shape";
import { EnumInput, NumberInput, TextInput, BooleanInput, ForeignText, type FieldProps } from "./simple";
import { DateInput, FileInput, SecretInput } from "./special";
import { schemaWords } from "./words";

/** So many optional fields stand open: a fold hides only what would be in the way. */
const OPEN_FIELDS = 3;

/** Help texts that replace the schema's descriptions, by field name; `edits.text` is inside `edits`. */
export type Help = Readonly<Record<string, string>>;

/** Shared by all fields of one form. `fold`: optional fields are collapsed at first. */
export interface FormContext {
  root: Schema;
  problems: Problems;
  help: Help;
  fold: boolean;
  browse: boolean;
}

export function AnyField({ around, path, ...given }: FieldProps & { around: FormContext; path: string }) {
  const t = schemaWords();
  const shape = shapeOf(given.schema, around.root, given.name.replace(/ \d+$/, ""));
  const schema = { ...shape.schema, description: helpAt(path, around.help) ?? shape.schema.description };
  const each = { ...given, schema, problem: given.problem ?? around.problems.get(path) };
  const isNull = given.value === null;
  const field =
    isNull && shape.nullable ? (
      <p class="schema-null">
        <b>
          <ForeignText text={given.name} />
        </b>{" "}
        <code class="faint">null</code>
      </p>
    ) : (
      drawn()
    );
  if (!shape.nullable) return field;
  return (
    <div class="schema-nullable">
      {field}
      <Switch
        label={
          <>
            {t.null}
            <span class="hush" data-given>
              {" "}
              {given.name}
            </span>
          </>
        }
        on={isNull}
        onSwitch={(on) => given.onValue(on ? null : undefined)}
      />
    </div>
  );

  function drawn() {
    switch (shape.kind) {
      case "text":
      case "long":
        return <TextInput {...each} long={shape.kind === "long"} />;
      case "path":
        return around.browse ? <PathInput {...each} /> : <TextInput {...each} long={false} />;
      case "secret":
        return <SecretInput {...each} />;
      case "date":
      case "time":
      case "date-time":
        return <DateInput {...each} kind={shape.kind} />;
      case "file":
        return <FileInput {...each} />;
      case "integer":
      case "number":
      case "text-or-number":
        return <NumberInput {...each} kind={shape.kind} />;
      case "enum":
        return <EnumInput {...each} />;
      // A switch is never without a value; where a person has to choose, nothing is chosen at first.
      case "boolean":
        return given.required && shape.schema.default === undefined ? (
          <EnumInput {...each} schema={{ ...schema, enum: [true, false] }} />
        ) : (
          <BooleanInput {...each} />
        );
      case "array":
        return <ListInput {...each} around={around} path={path} />;
      case "several":
        return <SeveralInput {...each} around={around} />;
      case "map":
        return <MapInput {...each} around={around} path={path} />;
      case "object":
        return <ObjectInput {...each} around={around} path={path} />;
      case "choice":
        return <ChoiceInput {...each} variants={shape.variants} around={around} path={path} />;
      case "json":
        return <JsonInput {...each} />;
    }
  }
}

/** All items of a list have the same fields; an item itself has no help of its own. */
function helpAt(path: string, help: Help): string | undefined {
  const name = path.replace(/\/\d+(?=\/)/g, "").replaceAll("/", ".");
  return Object.hasOwn(help, name) ? help[name] : undefined;
}

export function ObjectFields({
  schema,
  value,
  onValue,
  around,
  path = "",
  leaveOut = [],
}: {
  schema: Schema;
  value: Values;
  onValue: (value: Values) => void;
  around: FormContext;
  path?: string;
  leaveOut?: readonly string[];
}) {
  const t = schemaWords();
  const all = fieldsOf(schema, around.root);
  // What can have one value only leaves nothing to fill in: it is sent with the rest.
  const fixed = fixedValues(schema, around.root);
  const isFixed = (name: string) => Object.hasOwn(fixed, name) && [undefined, fixed[name]].includes(value[name]);
  const fields = all.filter((one) => !leaveOut.includes(one.name) && !isFixed(one.name));
  const required = fields.filter((one) => one.required);
  const optional = fields.filter((one) => !one.required);
  const isShort = !around.fold || optional.length <= OPEN_FIELDS;
  const first = isShort ? fields : required.length ? required : optional.slice(0, OPEN_FIELDS);
  const others = fields.filter((one) => !first.includes(one));
  const known = new Set(all.map((one) => one.name));
  const unknown = Object.keys(value).filter((name) => !known.has(name));
  const numbered = unknown.flatMap((name) => {
    const one = all.find((field) => field.name === name.replace(/\d+$/, ""));
    if (!one) return [];
    const description = helpAt(path + one.name, around.help) ?? one.schema.description;
    return [{ ...one, name, required: false, schema: { ...one.schema, description } }];
  });
  const also = unknown.filter((name) => !numbered.some((one) => one.name === name));
  const put = (name: string, next: Json | undefined) => {
    const changed = { ...fixed, ...value };
    if (next === undefined) delete changed[name];
    else changed[name] = next;
    onValue(changed);
  };
  const draw = (field: (typeof fields)[number]) => (
    <AnyField
      key={field.name}
      name={field.name}
      schema={field.schema}
      value={value[field.name]}
      onValue={(next) => put(field.name, next)}
      required={field.required}
      around={around}
      path={path + field.name}
    />
  );
  const isOpen = useSignal(false);
  // A fold opens by itself for what it holds, and closes by a person's hand only.
  if (
    !isOpen.peek() &&
    others.some((field) => value[field.name] !== undefined || around.problems.has(path + field.name))
  )
    isOpen.value = true;
  return (
    <div class="schema-fields">
      {first.map(draw)}
      {numbered.map(draw)}
      {others.length > 0 && (
        <details
          class="fold schema-more"
          open={isOpen.value}
          onToggle={(event) => (isOpen.value = event.currentTarget.open)}
        >
          <summary>{t.options(others.length)}</summary>
          <div class="schema-fields">{others.map(draw)}</div>
        </details>
      )}
      {also.length > 0 && <p class="faint">{t.also(also.join(", "))}</p>}
    </div>
  );
}

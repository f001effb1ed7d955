/** Turns a JSON Schema into form fields: references resolved, `allOf` merged, and one kind of field for each. */
import { decodePart } from "../../lib/uri";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Values = { [key: string]: Json };
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: Json[];
  const?: Json;
  default?: Json;
  examples?: Json[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema | boolean;
  additionalProperties?: boolean | Schema;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minItems?: number;
  maxItems?: number;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  nullable?: boolean;
  uniqueItems?: boolean;
  writeOnly?: boolean;
  contentEncoding?: string;
  if?: Schema;
  then?: Schema;
  $ref?: string;
}
export type Kind =
  | "text"
  | "long"
  | "path"
  | "secret"
  | "date"
  | "date-time"
  | "time"
  | "file"
  | "integer"
  | "number"
  | "text-or-number"
  | "boolean"
  | "enum"
  | "array"
  | "several"
  | "object"
  | "map"
  | "choice"
  | "json";
export interface Shape {
  kind: Kind;
  schema: Schema;
  nullable: boolean;
  variants: Schema[];
}

/** Names of fields that usually hold more than a line. */
const LONG = new RegExp(
  "^(content|text|patch|code|prompt|negative_prompt|script|body|old_string|new_string|" +
    "new_source|diff|diffContent|searchString|replaceString|message|markdown|html|input|sql|" +
    "template)\\d*$",
  "i",
);
const PATH = /(^|[_-])(path|file|folder|dir|directory|filename)\d*$|(Path|File|Dir|Folder|Directory)\d*$/;

const PATH_FORMAT = /^(path|file-?path|file|directory|folder|dir)$/i;
const SECRET = new RegExp(
  "(^|[_-])(password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token)$|" +
    "(Password|Secret|ApiKey|AccessToken|AuthToken)$",
  "i",
);
const FILE_FORMAT = /^(byte|binary|base64|data-ur[il])$/i;

export function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A schema as it stands, without `$ref` and `allOf`. A reference that leads in a circle ends after 20 steps. */
export function resolveSchema(schema: Schema | boolean | undefined, root: Schema, steps = 0): Schema {
  if (!isObject(schema) || steps > 20) return {};
  const given = schema as Schema;
  if (given.$ref)
    return { ...resolveSchema(resolveReference(given.$ref, root), root, steps + 1), ...without(given, "$ref") };
  if (!given.allOf) return given;
  return given.allOf.map((one) => resolveSchema(one, root, steps + 1)).reduce(mergeSchemas, without(given, "allOf"));
}

export function without(schema: Schema, key: keyof Schema): Schema {
  const rest = { ...schema };
  delete rest[key];
  return rest;
}

export function mergeSchemas(one: Schema, other: Schema): Schema {
  return {
    ...one,
    ...other,
    properties: { ...one.properties, ...other.properties },
    required: [...(one.required ?? []), ...(other.required ?? [])],
  };
}

function resolveReference(reference: string, root: Schema): Schema | undefined {
  if (!reference.startsWith("#")) return undefined;
  let at: unknown = root;
  for (const step of reference.slice(1).split("/").filter(Boolean))
    at = isObject(at) ? at[decodePart(step).replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  return at as Schema | undefined;
}

export function shapeOf(given: Schema | boolean | undefined, root: Schema, name = ""): Shape {
  const schema = resolveSchema(given, root);
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  const base = schema.properties && without(without(schema, "oneOf"), "anyOf");
  const all = (schema.oneOf ?? schema.anyOf ?? [])
    .map((one) => resolveSchema(one, root))
    .map((one) => (base && one.properties ? mergeSchemas(base, one) : one));
  const variants = all.filter((one) => one.type !== "null" && one.const !== null);
  const nullable =
    schema.nullable === true ||
    types.includes("null") ||
    variants.length < all.length ||
    (schema.enum?.includes(null) ?? false);
  const shape = (kind: Kind, changes: Partial<Shape> = {}): Shape => ({
    kind,
    schema,
    nullable,
    variants: [],
    ...changes,
  });
  if (variants.length === 1) {
    const only = shapeOf({ ...schema, oneOf: undefined, anyOf: undefined, ...variants[0] }, root, name);
    return { ...only, nullable: only.nullable || nullable };
  }
  if (variants.length > 1) {
    if (variants.every((one) => one.const !== undefined))
      return shape("enum", { schema: { ...schema, enum: variants.map((one) => one.const!) } });
    // Some values and any other text: whoever fills in a form chooses one of the values.
    const listed = variants.find((one) => one.enum);
    if (listed && variants.every((one) => one === listed || (one.type === "string" && Object.keys(one).length === 1)))
      return shape("enum", { schema: { ...schema, enum: listed.enum } });
    return shape("choice", { variants });
  }
  if (schema.enum) return shape("enum", { schema: { ...schema, enum: schema.enum.filter((one) => one !== null) } });
  if (schema.const !== undefined) return shape("enum", { schema: { ...schema, enum: [schema.const] } });
  const real = types.filter((one) => one !== "null");
  if (real.length === 2 && real.includes("string") && (real.includes("integer") || real.includes("number")))
    return shape("text-or-number");
  if (real.length > 1) return shape("choice", { variants: real.map((type) => ({ ...schema, type, title: type })) });
  const type = real[0] ?? (schema.properties ? "object" : schema.items ? "array" : "");
  if (type === "string") return shape(textKind(name, schema));
  if (type === "integer" || type === "number" || type === "boolean") return shape(type);
  if (type === "array") return shape(resolveSchema(schema.items, root).enum ? "several" : "array");
  if (type === "object")
    return shape(
      Object.keys(schema.properties ?? {}).length ? "object" : isObject(schema.additionalProperties) ? "map" : "json",
    );
  return shape("json");
}

function textKind(name: string, schema: Schema): Kind {
  const format = schema.format ?? "";
  if (format === "password" || schema.writeOnly || SECRET.test(name)) return "secret";
  if (format === "date" || format === "date-time" || format === "time") return format;
  if (schema.contentEncoding === "base64" || FILE_FORMAT.test(format)) return "file";
  if (PATH_FORMAT.test(format) || (!format && PATH.test(name))) return "path";
  return isLong(name, schema) ? "long" : "text";
}

/** The names of the fields that hold secrets, anywhere in a schema. */
export function secretNames(schema: Schema): ReadonlySet<string> {
  const names = new Set<string>();
  const look = (part: unknown, name: string) => {
    if (Array.isArray(part)) return part.forEach((one) => look(one, ""));
    if (!isObject(part)) return;
    if (name && shapeOf(part, schema, name).kind === "secret") names.add(name);
    for (const [key, inner] of Object.entries(part))
      if (key === "properties" && isObject(inner)) Object.entries(inner).forEach(([own, one]) => look(one, own));
      else look(inner, "");
  };
  look(schema, "");
  return names;
}

/** Values that may be stored in the browser: all but the secrets, at any depth. */
export function withoutSecrets(values: Values, secrets: ReadonlySet<string>): Values {
  const clean = (value: Json): Json =>
    Array.isArray(value) ? value.map(clean) : isObject(value) ? withoutSecrets(value, secrets) : value;
  const kept = Object.entries(values).filter(([name]) => !secrets.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, clean(value)]));
}

/** The property that tells variants of an object apart: each variant allows one value of it, and no two the same. */
export function discriminatorOf(variants: readonly Schema[]): string | undefined {
  if (variants.length < 2) return undefined;
  return Object.keys(variants[0]!.properties ?? {}).find((name) => {
    const values = variants.map((one) => onlyValue(one.properties?.[name]));
    return values.every((value) => value !== undefined) && new Set(values).size === values.length;
  });
}

/** The value of a field that can have no other; undefined if there is a choice. */
export function onlyValue(schema: Schema | undefined): Json | undefined {
  return schema?.const ?? (schema?.enum?.length === 1 ? schema.enum[0] : undefined);
}

function isLong(name: string, schema: Schema): boolean {
  if (schema.maxLength !== undefined && schema.maxLength <= 120) return false;
  return (
    LONG.test(name) ||
    (schema.maxLength ?? 0) > 400 ||
    /multi-?line|markdown|textarea/i.test(schema.format ?? "") ||
    (typeof schema.default === "string" && schema.default.includes("\n"))
  );
}

/** The fields of an object: those that must be there first, each in the order of the schema. */
export function fieldsOf(schema: Schema, root: Schema): { name: string; schema: Schema; required: boolean }[] {
  const must = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, one]) => ({
    name,
    schema: resolveSchema(one, root),
    required: must.has(name),
  }));
  return [...fields.filter((one) => one.required), ...fields.filter((one) => !one.required)];
}

/** The initial value of a new list item; undefined if the user has to enter it. */
export function initialValue(schema: Schema | boolean | undefined, root: Schema): Json {
  const { kind, schema: own } = shapeOf(schema, root);
  if (own.default !== undefined) return own.default;
  if (kind === "object") return fixedValues(own, root);
  if (kind === "json" || kind === "map") return {};
  if (kind === "array" || kind === "several") return [];
  if (kind === "boolean") return false;
  if (kind === "enum") return own.enum![0] ?? null;
  return kind === "integer" || kind === "number" ? (own.minimum ?? 0) : "";
}

/** The required values of an object that leave no choice. */
export function fixedValues(schema: Schema, root: Schema): Values {
  const fixed = fieldsOf(schema, root).filter((one) => one.required && onlyValue(one.schema) !== undefined);
  return Object.fromEntries(fixed.map((one) => [one.name, onlyValue(one.schema)!]));
}

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
  $ref?: string;
}
export type Kind =
  | "text"
  | "long"
  | "path"
  | "integer"
  | "number"
  | "text-or-number"
  | "boolean"
  | "enum"
  | "array"
  | "object"
  | "choice"
  | "json";
export interface Shape {
  kind: Kind;
  schema: Schema;
  nullable: boolean;
  variants: Schema[];
}

/** Names of fields that usually hold more than a line. */
const LONG =
  /^(content|text|patch|code|prompt|negative_prompt|script|body|old_string|new_string|new_source|diff|diffContent|searchString|replaceString|message|markdown|html|input|sql|template)\d*$/i;
const PATH = /(^|[_-])(path|file|folder|dir|directory|filename)\d*$|(Path|File|Dir|Folder|Directory)\d*$/;

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

function without(schema: Schema, key: keyof Schema): Schema {
  const rest = { ...schema };
  delete rest[key];
  return rest;
}

function mergeSchemas(one: Schema, other: Schema): Schema {
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
  const all = (schema.oneOf ?? schema.anyOf ?? []).map((one) => resolveSchema(one, root));
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
  if (type === "string") return shape(PATH.test(name) ? "path" : isLong(name, schema) ? "long" : "text");
  if (type === "integer" || type === "number" || type === "boolean") return shape(type);
  if (type === "array") return shape("array");
  if (type === "object") return shape(Object.keys(schema.properties ?? {}).length ? "object" : "json");
  return shape("json");
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
  if (kind === "object" || kind === "json") return {};
  if (kind === "array") return [];
  if (kind === "boolean") return false;
  if (kind === "enum") return own.enum![0] ?? null;
  return kind === "integer" || kind === "number" ? (own.minimum ?? 0) : "";
}

/** Validates values before they are sent: the problems, by the path of the field (`edits/0/path`). The server checks
 * all of it again: this only spares people a trip. */
import {
  discriminatorOf,
  fieldsOf,
  isObject,
  onlyValue,
  resolveSchema,
  shapeOf,
  type Json,
  type Schema,
  type Values,
} from "./shape";
import { schemaWords, typeWord } from "./words";

export type Problems = ReadonlyMap<string, string>;

export function problemsOf(schema: Schema, values: Values): Problems {
  const problems = new Map<string, string>();
  checkObject(resolveSchema(schema, schema), values, "", schema, problems);
  return problems;
}

function checkObject(schema: Schema, values: Values, path: string, root: Schema, problems: Map<string, string>): void {
  for (const field of fieldsOf(schema, root)) {
    const at = path + field.name;
    const value = values[field.name];
    if (value === undefined) {
      // A batch has numbered fields instead: `path1`, `path2`.
      if (field.required && field.schema.default === undefined && values[`${field.name}1`] === undefined)
        checkMissing(field.schema, at, root, problems, field.name);
    } else checkField(field.schema, value, at, root, problems, field.name);
  }
  const names = requiredAlternatives(schema);
  if (names.length && names.every((name) => values[name] === undefined && values[`${name}1`] === undefined))
    problems.set(path + names[0]!, schemaWords().oneRequired(names));
}

/** The fields of which `anyOf` requires one; none if it says anything else. */
function requiredAlternatives(schema: Schema): string[] {
  const variants = schema.anyOf ?? [];
  return variants.every((one) => one.required && Object.keys(one).length === 1)
    ? variants.flatMap((one) => one.required!)
    : [];
}

/** What is missing in a required object is told at its own fields: they are in sight already. */
function checkMissing(schema: Schema, path: string, root: Schema, problems: Map<string, string>, name: string): void {
  if (onlyValue(schema) !== undefined) return; // the form fills it in
  const shape = shapeOf(schema, root, name);
  const inside = new Map<string, string>();
  if (shape.kind === "object") checkObject(shape.schema, {}, `${path}/`, root, inside);
  else if (shape.kind === "choice" && discriminatorOf(shape.variants))
    checkObject(shape.variants[0]!, {}, `${path}/`, root, inside);
  if (!inside.size) inside.set(path, schemaWords().required);
  inside.forEach((problem, at) => problems.set(at, problem));
}

function checkField(
  schema: Schema,
  value: Json,
  path: string,
  root: Schema,
  problems: Map<string, string>,
  name: string,
): void {
  const shape = shapeOf(schema, root, name);
  const own = shape.schema;
  if (value === null && shape.nullable) return;
  const variant = shape.kind === "choice" ? onlyCandidate(shape.variants, value, root) : undefined;
  if (variant) return checkField(variant, value, path, root, problems, name);
  const problem = checkValue(shape.kind, own, value, shape.variants, root);
  if (problem) problems.set(path, problem);
  else if (shape.kind === "object" && isObject(value)) checkObject(own, value, `${path}/`, root, problems);
  else if (shape.kind === "map" && isObject(value))
    for (const [key, item] of Object.entries(value))
      checkField(own.additionalProperties as Schema, item, `${path}/${key}`, root, problems, key);
  else if (shape.kind === "array" && Array.isArray(value))
    value.forEach((item, n) => checkField(resolveSchema(own.items, root), item, `${path}/${n}`, root, problems, ""));
}

function checkValue(kind: string, schema: Schema, value: Json, variants: Schema[], root: Schema): string {
  const t = schemaWords();
  switch (kind) {
    case "enum":
      return schema.enum!.some((allowed) => JSON.stringify(allowed) === JSON.stringify(value)) ? "" : t.oneOf;
    case "boolean":
      return typeof value === "boolean" ? "" : t.wrong(typeWord("boolean"));
    case "integer":
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return kind === "integer" ? t.whole : t.number;
      return kind === "integer" && !Number.isInteger(value) ? t.whole : checkRange(schema, value);
    case "text-or-number":
      return typeof value === "number"
        ? checkRange(schema, value)
        : typeof value === "string"
          ? ""
          : t.wrong(typeWord("string"));
    case "text":
    case "long":
    case "path":
    case "secret":
    case "file":
    case "date":
    case "date-time":
    case "time":
      return typeof value === "string" ? checkText(schema, value) : t.wrong(typeWord("string"));
    case "array":
    case "several":
      if (!Array.isArray(value)) return t.wrong(typeWord("array"));
      if (value.length < (schema.minItems ?? 0)) return t.moreItems(schema.minItems!);
      if (value.length > (schema.maxItems ?? Infinity)) return t.fewerItems(schema.maxItems!);
      return schema.uniqueItems && new Set(value.map((one) => JSON.stringify(one))).size < value.length ? t.twice : "";
    case "map":
    case "object":
      return isObject(value) ? "" : t.wrong(typeWord("object"));
    case "choice":
      return variants.some((variant) => isValid(variant, value, root))
        ? ""
        : t.wrong(variants.map((each) => typeWord(String(each.title ?? each.type ?? ""))).join(" / "));
    default:
      return schema.type === "object" && !isObject(value) ? t.wrong(typeWord("object")) : "";
  }
}

/** The one variant that this value can be meant for, so that its problems are told at its own fields. */
function onlyCandidate(variants: readonly Schema[], value: Json, root: Schema): Schema | undefined {
  if (!isObject(value)) return undefined;
  const objects = variants.filter((one) => shapeOf(one, root).kind === "object");
  const tag = discriminatorOf(objects);
  const matching = tag ? objects.filter((one) => onlyValue(one.properties?.[tag]) === value[tag]) : objects;
  return matching.length === 1 ? matching[0] : undefined;
}

/** The variant that a value is of; -1 if it is of none. */
export function findVariant(variants: readonly Schema[], value: Json, root: Schema): number {
  const meant = onlyCandidate(variants, value, root);
  return meant ? variants.indexOf(meant) : variants.findIndex((one) => isValid(one, value, root));
}

/** True if a value matches this variant. */
export function isValid(schema: Schema, value: Json, root: Schema): boolean {
  const problems = new Map<string, string>();
  checkField(schema, value, "", root, problems, "");
  return problems.size === 0;
}

function checkRange(schema: Schema, value: number): string {
  const t = schemaWords();
  if (schema.minimum !== undefined && value < schema.minimum) return t.atLeast(schema.minimum);
  if (schema.maximum !== undefined && value > schema.maximum) return t.atMost(schema.maximum);
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    return t.moreThan(schema.exclusiveMinimum);
  if (schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum)
    return t.lessThan(schema.exclusiveMaximum);
  return schema.multipleOf && Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) > 1e-9
    ? t.step(schema.multipleOf)
    : "";
}

function checkText(schema: Schema, value: string): string {
  const t = schemaWords();
  const length = [...value].length;
  if (length < (schema.minLength ?? 0)) return length ? t.longer(schema.minLength!) : t.required;
  if (length > (schema.maxLength ?? Infinity)) return t.shorter(schema.maxLength!);
  const format = checkFormat(schema.format ?? "", value);
  if (format || schema.pattern === undefined) return format;
  try {
    return new RegExp(schema.pattern, "u").test(value) ? "" : t.pattern(schema.pattern);
  } catch {
    return ""; // a pattern of another dialect: the server knows it
  }
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  date: /^\d{4}-\d{2}-\d{2}$/,
  "date-time": /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/,
  time: /^\d{2}:\d{2}(:\d{2})?(\.\d+)?([Zz]|[+-]\d{2}:\d{2})?$/,
  email: /^[^\s@]+@[^\s@]+$/,
  uri: /^[a-z][a-z0-9+.-]*:\S+$/i,
};

function checkFormat(format: string, value: string): string {
  const t = schemaWords();
  if (!value || !FORMATS[format] || FORMATS[format].test(value)) return "";
  return { email: t.email, uri: t.uri }[format] ?? t.date;
}

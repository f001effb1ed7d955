/** The commands of a tool that has several: each with the schema of its own calls, so that a form shows only its
 * fields. They come from the server, or from a schema whose variants differ in the value of one property. */
import { toText } from "../../lib/text";
import { discriminatorOf, mergeSchemas, onlyValue, resolveSchema, without, type Schema, type Values } from "./shape";

export interface Command {
  /** The value of the argument `selector` that selects it. */
  name: string;
  selector: string;
  title: string;
  description: string;
  schema: Schema;
  help: Readonly<Record<string, string>>;
}

/** The commands in a schema with `oneOf`, `anyOf` or `if`/`then` on one property; none if it has no such thing. */
export function splitCommands(root: Schema): Command[] {
  const variants = (root.oneOf ?? root.anyOf ?? []).map((one) => resolveSchema(one, root));
  const selector = discriminatorOf(variants);
  if (!selector) return splitConditions(root);
  const base = without(without(root, "oneOf"), "anyOf");
  return variants.map((one) => toCommand(selector, base, one));
}

function splitConditions(root: Schema): Command[] {
  const conditions = (root.allOf ?? [root]).filter((one) => one.if && one.then);
  const selector = Object.keys(conditions[0]?.if?.properties ?? {})[0];
  const values = selector ? root.properties?.[selector]?.enum : undefined;
  if (!selector || !values) return [];
  const base = without(without(without(root, "allOf"), "if"), "then");
  return values.map((value) => {
    const own = conditions
      .filter((one) => {
        const wanted = one.if!.properties?.[selector];
        return wanted?.const === value || wanted?.enum?.includes(value);
      })
      .map((one) => resolveSchema(one.then, root));
    const only: Schema = { properties: { [selector]: { const: value } } };
    return toCommand(selector, base, [...own, only].reduce(mergeSchemas));
  });
}

function toCommand(selector: string, base: Schema, own: Schema): Command {
  const name = toText(onlyValue(own.properties![selector]));
  const schema = mergeSchemas(base, own);
  schema.properties![selector] = { const: name };
  schema.required = [...new Set([selector, ...(schema.required ?? [])])];
  return { name, selector, title: own.title ?? "", description: own.description ?? "", schema, help: {} };
}

export function selectedCommand(commands: readonly Command[], values: Values): Command | undefined {
  return commands.find((one) => values[one.selector] === one.name);
}

/** A numbered batch of commands (`command1`, `path1`, `command2`), which only the tool itself understands. */
export function isBatch(commands: readonly Command[], values: Values): boolean {
  return commands.length > 0 && Object.hasOwn(values, `${commands[0]!.selector}1`);
}

/** The schema that these values must match. */
export function callSchema(schema: Schema, commands: readonly Command[], values: Values): Schema {
  if (!commands.length) return schema;
  if (isBatch(commands, values)) return {};
  const { selector } = commands[0]!;
  return (
    selectedCommand(commands, values)?.schema ?? {
      type: "object",
      properties: { [selector]: { enum: commands.map((one) => one.name) } },
      required: [selector],
    }
  );
}

/** The values for another command: what it has in common with the one before stays. */
export function switchCommand(command: Command, values: Values): Values {
  const known = resolveSchema(command.schema, command.schema).properties ?? {};
  const kept = Object.entries(values).filter(([name]) => Object.hasOwn(known, name));
  return { [command.selector]: command.name, ...Object.fromEntries(kept), [command.selector]: command.name };
}

/** Values with the names that the form of their command uses, where they came with other names of the same. */
export function renameFields(
  commands: readonly Command[],
  values: Values,
  synonyms: Readonly<Record<string, string>>,
): Values {
  const known = selectedCommand(commands, values)?.schema.properties;
  if (!known) return values;
  const nameFor = (name: string) =>
    Object.hasOwn(known, name) ? name : (Object.keys(known).find((own) => synonyms[own] === name) ?? name);
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [nameFor(name), value]));
}

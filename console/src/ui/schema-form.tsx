/** A form made from a JSON Schema: what is needed comes first, the rest is folded. It holds nothing itself: `value` is
 * what would be sent, `onValue` gets the next one. `problems` (see `problemsOf`) are shown at their fields, `help` takes
 * the place of the schema's own descriptions. */
import "./schema/schema.css";
import type { Problems } from "./schema/check";
import { ObjectFields, type Help } from "./schema/any";
import { resolveSchema, type Schema, type Values } from "./schema/shape";

export { problemsOf, type Problems } from "./schema/check";
export type { Help } from "./schema/any";
export type { Json, Schema, Values } from "./schema/shape";

const NONE: Problems = new Map();
const NO_HELP: Help = {};

export function SchemaForm({
  schema,
  value,
  onValue,
  problems = NONE,
  help = NO_HELP,
  leaveOut = [],
  fold = true,
  browse = true,
}: {
  schema: Schema;
  value: Values;
  onValue: (value: Values) => void;
  problems?: Problems;
  help?: Help;
  leaveOut?: readonly string[];
  fold?: boolean;
  browse?: boolean;
}) {
  return (
    <ObjectFields
      schema={resolveSchema(schema, schema)}
      value={value}
      onValue={onValue}
      around={{ root: schema, problems, help, fold, browse }}
      leaveOut={leaveOut}
    />
  );
}

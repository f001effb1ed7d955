/** A form made from a JSON Schema: what is needed comes first, the rest is folded. It holds nothing itself: `value` is
 * what would be sent, `onValue` gets the next one. With `commands`, one chooses a command and sees only its fields.
 * `problems` (see `problemsOf`) are shown at their fields, `help` takes the place of the schema's own descriptions. */
import "./schema/schema.css";
import { useRef } from "preact/hooks";
import type { Problems } from "./schema/check";
import { ObjectFields, type Help } from "./schema/any";
import { isBatch, selectedCommand, switchCommand, type Command } from "./schema/command";
import { CommandField } from "./schema/command-field";
import { resolveSchema, type Schema, type Values } from "./schema/shape";
import { schemaWords } from "./schema/words";

export { problemsOf, type Problems } from "./schema/check";
export type { Help } from "./schema/any";
export type { Json, Schema, Values } from "./schema/shape";

const NONE: Problems = new Map();
const NO_HELP: Help = {};

export function SchemaForm({
  schema,
  commands = [],
  value,
  onValue,
  problems = NONE,
  help = NO_HELP,
  leaveOut = [],
  fold = true,
  browse = true,
}: {
  schema: Schema;
  commands?: readonly Command[];
  value: Values;
  onValue: (value: Values) => void;
  problems?: Problems;
  help?: Help;
  leaveOut?: readonly string[];
  fold?: boolean;
  browse?: boolean;
}) {
  const before = useRef<Values>({}); // what was typed for other commands, should one come back to them
  const chosen = selectedCommand(commands, value);
  const own = chosen?.schema ?? schema;
  if (isBatch(commands, value)) return <p class="quiet">{schemaWords().batch}</p>;
  return (
    <div class="schema-fields">
      {commands.length > 0 && (
        <CommandField
          commands={commands}
          chosen={chosen}
          problem={problems.get(commands[0]!.selector)}
          onChoose={(command) => {
            before.current = { ...before.current, ...value };
            onValue(switchCommand(command, before.current));
          }}
        />
      )}
      {(chosen || !commands.length) && (
        <ObjectFields
          key={chosen?.name}
          schema={resolveSchema(own, own)}
          value={value}
          onValue={onValue}
          around={{ root: own, problems, help: { ...help, ...chosen?.help }, fold, browse }}
          leaveOut={leaveOut}
        />
      )}
    </div>
  );
}

/** The choice of a command: few stand side by side, many in a list. What it does stands below. */
import { useId } from "preact/hooks";
import { revealHidden } from "../../lib/hidden-characters";
import { Field } from "../field";
import type { Command } from "./command";
import { ForeignText } from "./simple";
import { schemaWords } from "./words";

const SIDE_BY_SIDE = 5;
const MOST_LETTERS = 48;
const MOST_DESCRIPTION = 280;

export function CommandField({
  commands,
  chosen,
  onChoose,
  problem,
}: {
  commands: readonly Command[];
  chosen: Command | undefined;
  onChoose: (command: Command) => void;
  problem?: string;
}) {
  const t = schemaWords();
  const id = useId();
  const help = chosen && firstParagraph(chosen.description);
  const letters = commands.map(nameOf).join("").length;
  if (commands.length <= SIDE_BY_SIDE && letters <= MOST_LETTERS)
    return (
      <fieldset class="schema-command" aria-describedby={help ? `${id}-h` : undefined}>
        <legend>
          {t.command}
          <span class="must" aria-hidden="true">
            {" "}
            *
          </span>
        </legend>
        <div class="schema-commands">
          {commands.map((one) => (
            <label key={one.name} data-given>
              <input
                type="radio"
                name={id}
                checked={one === chosen}
                aria-invalid={problem ? true : undefined}
                onChange={() => onChoose(one)}
              />
              <span>{nameOf(one)}</span>
            </label>
          ))}
        </div>
        {help && (
          <div class="faint" id={`${id}-h`} data-given>
            {help}
          </div>
        )}
        {problem && (
          <div class="problem" role="alert">
            {problem}
          </div>
        )}
      </fieldset>
    );
  return (
    <div class="schema-command">
      <Field label={t.command} help={help && <ForeignText text={help} />} problem={problem} required>
        {(ids) => (
          <select
            {...ids}
            value={chosen?.name ?? ""}
            onInput={(event) => {
              const one = commands.find((each) => each.name === event.currentTarget.value);
              if (one) onChoose(one);
            }}
          >
            {!chosen && <option value="">{t.chooseCommand}</option>}
            {commands.map((one) => (
              <option key={one.name} value={one.name} data-given>
                {nameOf(one)}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

function nameOf(command: Command): string {
  return revealHidden(
    command.title && command.title !== command.name ? `${command.title} (${command.name})` : command.name,
  );
}

/** A description is written for models and may go on for pages: its first paragraph says what the command does. */
function firstParagraph(text: string): string {
  const first = revealHidden(text).trim().split(/\n/, 1)[0] ?? "";
  return first.length > MOST_DESCRIPTION ? `${first.slice(0, MOST_DESCRIPTION)}…` : first;
}

/** The problems of a plugin: location, message and fix. */
import type { ProblemRow } from "toolyard-client";
import { revealHidden } from "../../lib/hidden-characters";
import { Icon } from "../../ui/icon";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { pluginWords } from "./words-plugin";

export function ProblemList({ problems }: { problems: readonly ProblemRow[] }) {
  return (
    <ul class="tools-problems">
      {problems.map((one, n) => (
        <li key={n} class={one.warning ? "warn" : "bad"}>
          <Icon sign={one.warning ? "warning" : "error"} size={17} />
          <div>
            <ProblemText problem={one} withPlace />
          </div>
        </li>
      ))}
    </ul>
  );
}

export function ProblemText({ problem, withPlace = false }: { problem: ProblemRow; withPlace?: boolean }) {
  const t = pluginWords();
  const place = problem.line ? `${problem.file || t.manifestFile}:${problem.line}:${problem.column}` : problem.file;
  return (
    <>
      {withPlace && place && (
        <span class="mono faint" data-given>
          {revealHidden(place)}{" "}
        </span>
      )}
      <MessageText message={messageIn(problem, "message")} />
      {problem.fix && (
        <span class="quiet">
          {" "}
          {t.fix} <MessageText message={messageIn(problem, "fix")} />
        </span>
      )}
    </>
  );
}

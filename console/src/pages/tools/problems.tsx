/** The problems of a plugin: location, message and fix. */
import { revealHidden } from "../../lib/hidden-characters";
import { Icon } from "../../ui/icon";
import { Told } from "../../ui/told";
import type { Problem } from "./types";
import { pluginWords } from "./words-plugin";

export function ProblemList({ problems }: { problems: readonly Problem[] }) {
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

export function ProblemText({ problem, withPlace = false }: { problem: Problem; withPlace?: boolean }) {
  const t = pluginWords();
  const place = problem.line ? `${problem.file || t.manifestFile}:${problem.line}:${problem.column}` : problem.file;
  return (
    <>
      {withPlace && place && (
        <span class="mono faint" data-given>
          {revealHidden(place)}{" "}
        </span>
      )}
      <Told text={problem.message} />
      {problem.fix && (
        <span class="quiet">
          {" "}
          {t.fix} <Told text={problem.fix} />
        </span>
      )}
    </>
  );
}

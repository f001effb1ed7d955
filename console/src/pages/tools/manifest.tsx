/** The manifest of a plugin: its trust first, then its text with each problem at its line. */
import type { PluginDetail, ProblemRow } from "toolyard-client";
import { Empty } from "../../ui/state";
import { NumberedLines, type LineNotes } from "./numbered-lines";
import { ProblemList, ProblemText } from "./problems";
import { Trust } from "./trust";
import { pluginWords } from "./words-plugin";

export function ManifestTab({ plugin, reload }: { plugin: PluginDetail; reload: () => void }) {
  const t = pluginWords();
  const all = uniqueProblems([...plugin.problems, ...plugin.lint]);
  const elsewhere = all.filter((one) => !isInManifest(one));
  const inManifest = all.filter(isInManifest);
  return (
    <div class="stack">
      <Trust plugin={plugin} reload={reload} />
      {elsewhere.length > 0 && (
        <section class="stack">
          <h2>{t.problems}</h2>
          <ProblemList problems={elsewhere} />
        </section>
      )}
      {plugin.manifest ? (
        <NumberedLines
          text={plugin.manifest}
          name={t.manifestFile}
          label={t.manifestText}
          notesOf={(line) => notesOf(inManifest, line)}
        />
      ) : (
        <Empty sign="file" title={t.noManifest} />
      )}
    </div>
  );
}

function isInManifest(problem: ProblemRow): boolean {
  return problem.line > 0 && (!problem.file || problem.file === "plugin-manifest.json");
}

function uniqueProblems(problems: readonly ProblemRow[]): ProblemRow[] {
  return [...new Map(problems.map((one) => [`${one.file}:${one.line}:${one.column}:${one.message}`, one])).values()];
}

function notesOf(problems: readonly ProblemRow[], line: number): LineNotes | null {
  const t = pluginWords();
  const here = problems.filter((one) => one.line === line);
  if (!here.length) return null;
  return {
    tone: here.some((one) => !one.warning) ? "bad" : "warn",
    notes: here.map((one) => (
      <>
        <b>{t.line(one.line, one.column)}</b> <ProblemText problem={one} />
      </>
    )),
  };
}

/** The manifest of a plugin: its trust first, then its text with each problem at its line. */
import { revealHidden } from "../../lib/hidden-characters";
import { CopyButton } from "../../ui/button";
import { Empty } from "../../ui/state";
import { ProblemList, ProblemText } from "./problems";
import { Trust } from "./trust";
import type { PluginDetail, Problem } from "./types";
import { pluginWords } from "./words-plugin";

/** More lines than any manifest that people write; the rest is only counted. */
const MOST = 3000;

export function ManifestTab({ plugin, reload }: { plugin: PluginDetail; reload: () => void }) {
  const t = pluginWords();
  const all = uniqueProblems([...plugin.problems, ...plugin.lint]);
  const elsewhere = all.filter((one) => !isInManifest(one));
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
        <Lines text={plugin.manifest} problems={all.filter(isInManifest)} />
      ) : (
        <Empty sign="file" title={t.noManifest} />
      )}
    </div>
  );
}

function isInManifest(problem: Problem): boolean {
  return problem.line > 0 && (!problem.file || problem.file === "plugin-manifest.json");
}

function uniqueProblems(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((one) => [`${one.file}:${one.line}:${one.column}:${one.message}`, one])).values()];
}

function Lines({ text, problems }: { text: string; problems: readonly Problem[] }) {
  const t = pluginWords();
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="code tools-lines">
      <div class="code-head">
        <span class="faint cut" title={t.manifestFile}>
          {t.manifestFile}
        </span>
        <CopyButton text={text} />
      </div>
      <div class="tools-lines-body" tabIndex={0} role="region" aria-label={t.manifestText}>
        {lines.slice(0, MOST).map((line, n) => {
          const here = problems.filter((one) => one.line === n + 1);
          const tone = here.some((one) => !one.warning) ? "bad" : here.length ? "warn" : "";
          return (
            <div key={n} class={`tools-line ${tone}`}>
              <span class="tools-no" aria-hidden="true">
                {n + 1}
              </span>
              <span class="tools-line-text" data-given>
                {revealHidden(line) || " "}
              </span>
              {here.map((one, m) => (
                <span key={m} class="tools-line-note">
                  <b>{t.line(one.line, one.column)}</b> <ProblemText problem={one} />
                </span>
              ))}
            </div>
          );
        })}
        {lines.length > MOST && <p class="faint">{t.rest(lines.length - MOST)}</p>}
      </div>
    </div>
  );
}

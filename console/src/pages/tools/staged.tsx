/** A plugin that was brought here and has not run: its files, its size, what it would run, its faults. */
import type { AccessChoice, StagedPluginResponse } from "toolyard-client";
import { revealHidden } from "../../lib/hidden-characters";
import { ProblemList } from "./problems";
import { ReviewFiles } from "./review-files";
import { titleOf } from "./translation";
import { ReviewFacts } from "./trust";
import { pluginWords } from "./words-plugin";

/** `access` is the decision whose meaning is shown. */
export function StagedView({ staged, access }: { staged: StagedPluginResponse; access: AccessChoice }) {
  const t = pluginWords();
  return (
    <>
      <div data-given>
        <h3>{revealHidden(titleOf(staged))}</h3>
        <p class="faint mono">{revealHidden(staged.source)}</p>
      </div>
      {staged.problems.length > 0 && <ProblemList problems={staged.problems} />}
      {staged.review && <ReviewFacts review={{ ...staged.review, access }} />}
      {staged.left_out.length > 0 && <p class="quiet">{t.leftOut(revealHidden(staged.left_out.join(", ")))}</p>}
      <ReviewFiles base={`/v1/plugins/install/${encodeURIComponent(staged.staged)}`} />
    </>
  );
}

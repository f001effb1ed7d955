/** What a running call reports: a bar when it says how far it is, and its last lines. */
import { dictionary } from "../lib/language";
import { progressOf } from "../lib/progress";
import { revealHidden } from "../lib/hidden-characters";

const words = dictionary({ progress: "Progress" }, { progress: "进度" });

export function CallProgress({ id, most = 6 }: { id: string; most?: number }) {
  const { done, lines } = progressOf(id).value;
  if (done === null && !lines.length) return null;
  return (
    <div class="call-progress" role="group" aria-label={words().progress}>
      {done !== null && <progress aria-label={words().progress} max={1} value={done} />}
      {lines.length > 0 && (
        <pre data-given tabIndex={0} aria-label={words().progress}>
          {revealHidden(lines.slice(-most).join("\n"))}
        </pre>
      )}
    </div>
  );
}

/** The model's reasoning: one collapsed line with its duration and length; while it is reasoning, the latest words. */
import { formatDuration } from "../../lib/clock";
import { Icon } from "../../ui/icon";
import { words } from "./words";

const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu;

export function ThinkingFold({ text, ms, growing }: { text: string; ms: number; growing: boolean }) {
  const t = words();
  const count = (text.match(WORD) ?? []).length;
  const last = growing ? (text.trimEnd().split("\n").pop() ?? "").slice(-160) : "";
  const head = growing
    ? t.thinkingNow
    : [t.thinking, ms >= 100 ? formatDuration(ms / 1000) : "", t.words(count)]
        .filter(Boolean)
        .join(t.thinking === "思考" ? "，" : ", ");
  return (
    <details class="chat-thinking">
      <summary>
        <Icon sign="thinking" size={15} />
        <span class="chat-nowrap">{head}</span>
        {last && (
          <bdi class="chat-last cut" title={last} data-given>
            {last}
          </bdi>
        )}
      </summary>
      <div class="chat-thought" dir="auto" data-given>
        {text.trim()}
      </div>
    </details>
  );
}

/** What a test of a provider brought: its models, or its own words and what to do about them. */
import type { UpstreamTestResult } from "toolyard-client";
import { formatDuration } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { Notice } from "../../ui/state";
import { PROTOCOLS } from "./provider";
import { words } from "./words";

const SHOWN = 12;

export function ProbeResult({ result }: { result: UpstreamTestResult }) {
  const t = words();
  if (!result.ok)
    return (
      <Notice tone="bad">
        <p class="providers-error">
          <strong>{t.testFailed}</strong> <MessageText message={messageIn(result, "error")} />
        </p>
        {result.hint && (
          <p>
            <MessageText message={messageIn(result, "hint")} />
          </p>
        )}
      </Notice>
    );
  return (
    <Notice tone="good">
      <strong>{result.models.length ? t.modelsFound(result.models.length) : t.noModels}</strong>{" "}
      <span class="faint">{t.answered(formatDuration(result.ms / 1000))}</span>
      {result.protocol && (
        <p class="faint">
          {t.speaks} <span data-given>{PROTOCOLS[result.protocol]}</span>
        </p>
      )}
      {result.models.length > 0 && (
        <div class="providers-names">
          {result.models.slice(0, SHOWN).map((name) => (
            <code key={name}>{revealHidden(name)}</code>
          ))}
          {result.models.length > SHOWN && <span class="faint">{t.more(result.models.length - SHOWN)}</span>}
        </div>
      )}
    </Notice>
  );
}

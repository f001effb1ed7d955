/** The line under a reply that grows: what it waits for, and for how long. Nothing waits without a reason and a timer. */
import { hasScope } from "../../lib/api";
import { formatDuration, now } from "../../lib/clock";
import { pendingApprovals } from "../../lib/counters";
import { revealHidden } from "../../lib/hidden-characters";
import type { Message, ProviderWait } from "./model";
import { waitOf } from "./wait";
import { words } from "./words";
import { waitingWords } from "./words-waiting";

const UNNAMED = "upstream"; // the provider of the settings that has no name
const QUIET_S = 3; // words that come more often than this need no timer

export function Waiting({ message }: { message: Message }) {
  const { reason, time, warns } = describeWait(message, now.value / 1000);
  return (
    <div class={`chat-writing${warns ? " warns" : ""}`}>
      <span class="chat-dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span role="status" class={reason ? "" : "hush"}>
        {reason || words().writing}
      </span>
      {time && (
        <span role="timer" class="faint tabular">
          {time}
        </span>
      )}
    </div>
  );
}

interface Description {
  reason: string;
  time: string;
  warns?: boolean;
}

function describeWait(message: Message, at: number): Description {
  const t = waitingWords();
  const wait = waitOf(message);
  const elapsed = (since: number) => formatDuration(Math.max(0, Math.floor(at - since)));
  switch (wait.kind) {
    case "approval": {
      const expires = pendingApprovals.value.find((one) => one.id === wait.approval)?.expires;
      const time = expires ? t.left(formatDuration(Math.max(0, Math.ceil(expires - at)))) : "";
      return { reason: hasScope("approve") ? t.forYou : t.forSomebody, time };
    }
    case "tool":
      return { reason: t.forTools(wait.tools.map(revealHidden).join(t.and)), time: elapsed(wait.since) };
    case "retry":
      return { ...describeRetry(wait.because, wait.since, at), warns: true };
    case "provider":
      return { reason: t.forModel(revealHidden(message.model)), time: t.noByte(elapsed(wait.since)) };
    case "text":
      return at - wait.since < QUIET_S
        ? { reason: "", time: "" }
        : { reason: t.silent, time: t.since(elapsed(wait.since)) };
  }
}

function describeRetry(because: ProviderWait, since: number, at: number): Description {
  const t = waitingWords();
  const elapsed = formatDuration(Math.max(0, Math.floor(at - since)));
  const left = Math.ceil(because.until - at);
  if (because.kind === "fallback")
    return { reason: t.instead(describeFault(because), nameOf(because.next)), time: t.noByte(elapsed) };
  return {
    reason: because.kind === "connection" ? t.lost : describeFault(because),
    time:
      left > 0 || because.kind === "connection"
        ? t.nextTry(formatDuration(Math.max(0, left)))
        : t.again(because.attempt, because.attempts, elapsed),
  };
}

function describeFault({ provider, status, code }: ProviderWait): string {
  const t = waitingWords();
  const name = nameOf(provider);
  if (status !== null) return t.answered(name, status);
  if (code === "upstream_unreachable") return t.unreachable(name);
  if (code === "upstream_timeout") return t.slow(name);
  return code === "upstream_cut_off" ? t.brokeOff(name) : t.failed(name);
}

function nameOf(provider: string): string {
  return provider === UNNAMED ? waitingWords().provider : revealHidden(provider);
}

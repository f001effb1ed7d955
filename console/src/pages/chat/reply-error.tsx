/** A reply that did not come to its end: why, and what can be done. What had come stays above it. */
import { toFailure } from "../../lib/api";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { ErrorText } from "../../ui/state";
import type { Fault } from "./model";
import { words } from "./words";

const TOO_LONG = /context_length_exceeded|context (length|window)|maximum context|prompt is too long/i;
const STATUS = /^upstream_(\d{3})$/;

export function ReplyError({ fault, hasText, onAgain }: { fault: Fault; hasText: boolean; onAgain?: () => void }) {
  const t = words();
  const known: Record<string, string> = { upstream_cut_off: t.cut, lost: t.lost, chat_busy: t.busy };
  const title = known[fault.code] && (hasText || fault.code === "chat_busy") ? known[fault.code]! : t.failed;
  return (
    <div class="chat-broken" role="alert">
      <Icon sign="error" size={18} />
      <div class="grow">
        <strong>{title}</strong>
        {fault.message && <ErrorText error={toFailure(fault)} />}
        {TOO_LONG.test(`${fault.code} ${fault.message}`) && <p>{t.tooLong}</p>}
        {(fault.code || fault.request) && (
          <p class="faint mono" data-given>
            {[fault.code.replace(STATUS, "HTTP $1"), fault.request].filter(Boolean).join(" · ")}
          </p>
        )}
      </div>
      {onAgain && (
        <Button sign="retry" onClick={onAgain}>
          {t.retry}
        </Button>
      )}
    </div>
  );
}

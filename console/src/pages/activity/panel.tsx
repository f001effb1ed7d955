/** One call, whole, at the side of the list: its address is `?call=ID&part=…`. */
import { waitingLink } from "../../lib/approval-link";
import { useMemo } from "preact/hooks";
import type { CallDetail } from "toolyard-client";
import { formatDuration } from "../../lib/clock";
import { isWaiting } from "../../lib/counters";
import { setQuery, queryParam, navigate } from "../../lib/router";
import { useResource } from "../../lib/resource";
import { codeLink } from "../../lib/error-codes";
import { revealHidden } from "../../lib/hidden-characters";
import { failureAdvice } from "../../lib/envelope-text";
import { messageIn } from "../../lib/messages";
import { callerName } from "../../lib/caller";
import { Button, CopyButton } from "../../ui/button";
import { CallProgress } from "../../ui/call-progress";
import { StateChip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { filesOf } from "../../ui/patch";
import { MessageText } from "../../ui/message-text";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { Ago } from "../../ui/time";
import { Changes, Undo } from "./changes";
import { toCurl, toFixture } from "./copies";
import { Input } from "./input";
import { Output } from "./output";
import { ProcessPart } from "./process";
import { Related } from "./related";
import { stopCall, Duration } from "./row";
import { Timeline } from "./timeline";
import { CALL_TOPICS, callPath, stateOf, titleOf } from "./types";
import { activityWords as words, originOf } from "./words";

const SHORT_MS = 500; // to ask the rules takes a moment too
type Part = "output" | "input" | "patch" | "timeline" | "process" | "related";

export function Panel({ id }: { id: string }) {
  const t = words();
  const detail = useResource<CallDetail>(
    callPath(id),
    [...CALL_TOPICS, "approval.", "task."],
    (data) => data.id === id || data.call_id === id || data.retry_of === id,
  );
  const call = detail.value;
  const isMissing = !call && detail.error?.status === 404;
  const runs = call?.state === "running";
  return (
    <Dialog
      side
      given={!!call}
      title={call ? titleOf(call) : t.call}
      onClose={() => setQuery({ call: null, part: null, view: null })}
      footer={
        call && (
          <>
            <CopyButton short={false} label={t.curl} text={() => toCurl(call)} />
            <CopyButton short={false} label={t.fixture} text={() => toFixture(call)} />
            <span class="grow" />
            {runs && (
              <Button kind="danger" sign="stop" onClick={() => stopCall(id)}>
                {t.stop}
              </Button>
            )}
            <Button
              sign="retry"
              onClick={() => navigate(`/tools/${encodeURIComponent(call.tool)}?call=${encodeURIComponent(id)}`)}
            >
              {t.retry}
            </Button>
          </>
        )
      }
    >
      {!call && detail.state === "loading" && <Loading />}
      {isMissing && (
        <Empty
          sign="search"
          title={t.noCall}
          action={<Button onClick={() => setQuery({ call: null, part: null, view: null })}>{t.showCalls}</Button>}
        >
          {t.noCallText}
        </Empty>
      )}
      {detail.state === "fault" && !isMissing && <Fault error={detail.error} retry={detail.reload} />}
      {call && <CallView call={call} reload={detail.reload} />}
    </Dialog>
  );
}

function CallView({ call, reload }: { call: CallDetail; reload: () => void }) {
  const t = words();
  const files = useMemo(() => filesOf(call.envelope), [call.envelope]);
  const advice = call.envelope?.error ? failureAdvice(call.envelope) : null;
  const runs = call.state === "running";
  const waits = runs && (call.approval?.state === "pending" || isWaiting(call.id));
  const tabs: { id: Part; name: string; count?: number }[] = [
    { id: "output", name: t.output },
    { id: "input", name: t.input },
    ...(files.length ? [{ id: "patch" as Part, name: t.patch, count: files.length }] : []),
    { id: "timeline", name: t.timeline },
    ...(call.process ? [{ id: "process" as Part, name: t.process }] : []),
    { id: "related", name: t.related },
  ];
  const requestedPart = queryParam("part") as Part;
  const part = tabs.some((tab) => tab.id === requestedPart)
    ? requestedPart
    : runs
      ? "input"
      : files.length
        ? "patch"
        : "output";
  return (
    <>
      <div class="act-facts">
        <StateChip state={waits ? "approval" : stateOf(call)} />
        <Duration call={call} from={call.timeline?.find((step) => step.what === "allowed")?.at} />
        {(call.waited_ms ?? 0) >= SHORT_MS && (
          <span class="quiet">{t.waited(formatDuration(call.waited_ms! / 1000))}</span>
        )}
        <span class="quiet">
          <span data-given>{revealHidden(callerName(call.caller))}</span> · {originOf(t, call.origin)}
        </span>
        <span class="faint">
          <Ago at={call.started} />
        </span>
        <span class="act-id">
          <code class="cut faint" title={call.id}>
            {call.id}
          </code>
          <CopyButton text={call.id} label={t.copyId} />
        </span>
      </div>
      {runs && <CallProgress id={call.id} most={40} />}
      {waits && (
        <Notice tone="warn" action={<Button onClick={() => navigate(waitingLink(call.id))}>{t.answer}</Button>}>
          {t.waitsForApproval}
        </Notice>
      )}
      {call.error && (
        <Notice tone={call.state === "cancelled" ? "warn" : "bad"}>
          <strong class="mono act-codes">
            {[call.error.code, ...(call.reason ? [call.reason] : [])].map((code) => (
              <a key={code} href={codeLink(code)} title={t.sameCode(code)} data-given>
                {code}
              </a>
            ))}
          </strong>
          <p class="act-error">
            <MessageText message={messageIn(call.error, "message")} />
          </p>
          {advice?.more && (
            <p class="quiet act-error" data-given>
              {revealHidden(advice.more)}
            </p>
          )}
          {advice?.hint.text && (
            <p class="quiet act-error">
              <MessageText message={advice.hint} />
            </p>
          )}
        </Notice>
      )}
      <Tabs label={t.parts} tabs={tabs} open={part} onOpen={(next) => setQuery({ part: next, view: null })} />
      {part === "input" && <Input call={call} />}
      {part === "output" && !files.length && (call.undoable || call.undone) && (
        <Undo call={call} files={files} onUndone={reload} />
      )}
      {part === "output" && <Output call={call} />}
      {part === "patch" && <Changes call={call} files={files} onUndone={reload} />}
      {part === "timeline" && <Timeline call={call} />}
      {part === "process" && call.process && <ProcessPart process={call.process} />}
      {part === "related" && <Related call={call} />}
    </>
  );
}

/** One schedule, whole, with its runs and all that can be done with it. */
import { approvalLink } from "../../lib/approval-link";
import { useSignal } from "@preact/signals";
import type { ScheduleDetail } from "toolyard-client";
import { chatLink } from "../../lib/chat-link";
import { formatAbsolute, formatDuration } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { setQuery } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { callerName } from "../../lib/caller";
import { Button, CopyButton } from "../../ui/button";
import { Chip, StateChip } from "../../ui/chip";
import { Json } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Fault, Loading, Notice } from "../../ui/state";
import { Ago } from "../../ui/time";
import { Arguments } from "../approvals/arguments";
import { runAction } from "./actions";
import { cronWords } from "./cron-words";
import { Condition, lateReason, TimeLeft, reasonOf } from "./row";
import { schedulePath } from "./types";
import { formatIso } from "./when";
import { scheduleWords as words } from "./words";

export function Panel({ id }: { id: string }) {
  const t = words();
  const detail = useResource<ScheduleDetail>(
    schedulePath(id),
    ["schedule.", "approval."],
    (data) => data.id === id || String(data.id).startsWith("approval_"),
  );
  const fault = useSignal<Error | null>(null);
  const asking = useSignal(false);
  const one = detail.value;
  const act = (what: Parameters<typeof runAction>[1]) => async () => {
    fault.value = null;
    await runAction(id, what);
    detail.reload();
  };
  const onFault = (error: unknown) => (fault.value = error as Error);
  const isOpen = one?.state === "scheduled" || one?.state === "paused";
  return (
    <Dialog
      side
      given={!!one}
      title={one ? one.tool : t.detail}
      onClose={() => setQuery({ schedule: null })}
      footer={
        one && (
          <>
            {(isOpen || one.state === "expired") && (
              <Button kind="danger" onClick={() => void (asking.value = true)}>
                {one.proposed ? t.remove : t.cancel}
              </Button>
            )}
            <span class="grow" />
            {!one.proposed && (
              <Button
                kind="quiet"
                sign="duplicate"
                onClick={() => setQuery({ schedule: null, form: `copy:${id}` }, false)}
              >
                {t.copy}
              </Button>
            )}
            {isOpen && (
              <Button sign="edit" onClick={() => setQuery({ schedule: null, form: `edit:${id}` }, false)}>
                {t.edit}
              </Button>
            )}
            {one.state === "scheduled" && !one.proposed && (
              <Button sign="pause" onFault={onFault} onClick={act("pause")}>
                {t.pause}
              </Button>
            )}
            {one.state === "paused" && (
              <Button sign="resume" onFault={onFault} onClick={act("resume")}>
                {t.resume}
              </Button>
            )}
            {((one.state === "scheduled" && !one.proposed) || one.state === "expired") && (
              <Button kind="primary" sign="play" onFault={onFault} onClick={act("run")}>
                {t.run}
              </Button>
            )}
            {one.proposed && (
              <Button kind="primary" sign="approvals" onFault={onFault} onClick={act("allow")}>
                {t.allow}
              </Button>
            )}
          </>
        )
      }
    >
      {!one && detail.state === "loading" && <Loading />}
      {detail.state === "fault" && <Fault error={detail.error} retry={detail.reload} />}
      {fault.value && <Fault error={fault.value} />}
      {one && <ScheduleView one={one} />}
      {asking.value && (
        <Dialog
          title={one?.proposed ? t.removeAsk : t.cancelAsk}
          onClose={() => (asking.value = false)}
          footer={
            <>
              <Button onClick={() => void (asking.value = false)}>{t.keep}</Button>
              <Button
                kind="danger"
                onFault={(error) => {
                  onFault(error);
                  asking.value = false;
                }}
                onClick={async () => {
                  await act("cancel")();
                  asking.value = false;
                }}
              >
                {one?.proposed ? t.remove : t.cancel}
              </Button>
            </>
          }
        >
          <p>{t.cancelText}</p>
        </Dialog>
      )}
    </Dialog>
  );
}

function ScheduleView({ one }: { one: ScheduleDetail }) {
  const t = words();
  const repeats = one.cron ? cronWords(one.cron) : null;
  const why = reasonOf(one);
  const chat = one.chat_kept ? chatLink(one.chat) : null;
  const ahead = one.state === "scheduled" || one.state === "paused" || one.state === "running";
  return (
    <>
      <div class="row">
        <Condition one={one} />
        <span class="quiet tabular">
          <TimeLeft one={one} />
        </span>
      </div>
      {why && (
        <Notice
          tone="warn"
          action={
            one.approval && (
              <a class="button" href={approvalLink(one.approval)}>
                {t.toApproval}
              </a>
            )
          }
        >
          <span class="sch-why">{revealHidden(why)}</span>
        </Notice>
      )}
      {one.state === "paused" && <Notice>{t.paused}</Notice>}
      <dl class="facts">
        <dt>{ahead ? t.nextRun : t.wasScheduledFor}</dt>
        <dd class="tabular" data-given>
          {formatIso(one.scheduled_for)}
        </dd>
        {one.cron && (
          <>
            <dt>{t.rule}</dt>
            <dd>
              {repeats && <span>{repeats} </span>}
              <span class="mono faint" data-given>
                {one.cron}
              </span>
            </dd>
          </>
        )}
        <dt>{t.zone}</dt>
        <dd data-given>{one.zone}</dd>
        <dt>{t.caller}</dt>
        <dd data-given>
          {revealHidden(one.maid ? `${one.maid} (${callerName(one.caller)})` : callerName(one.caller))}
        </dd>
        <dt>{t.created}</dt>
        <dd>
          <Ago at={one.created} />
        </dd>
        {one.chat && (
          <>
            <dt>{t.chat}</dt>
            <dd data-given>{chat ? <a href={chat}>{revealHidden(one.chat)}</a> : revealHidden(one.chat)}</dd>
          </>
        )}
        <dt>{t.id}</dt>
        <dd class="mono sch-id">
          <span data-given>{one.id}</span>
          <CopyButton text={one.id} />
        </dd>
      </dl>
      {one.proposed ? (
        <Arguments value={one.arguments} hidden={one.hidden} reveal={`${schedulePath(one.id)}/arguments`} />
      ) : (
        <Json label={t.arguments} value={one.arguments} />
      )}
      <section class="stack" aria-label={t.runs}>
        <h3>{t.runs}</h3>
        {one.runs.length ? (
          <ul class="sch-past">
            {[...one.runs].reverse().map((run, at) => (
              <li key={at}>
                <StateChip state={run.state} />
                {run.late_s && <Chip tone="warn">{t.lateBy(formatDuration(Math.floor(run.late_s)))}</Chip>}
                <time class="tabular">{formatAbsolute(run.at)}</time>
                {run.call_id && <a href={`/activity?call=${encodeURIComponent(run.call_id)}`}>{t.open}</a>}
                {run.late_because && <p class="quiet">{lateReason(run.late_because)}</p>}
                <p class="quiet">
                  <MessageText message={messageIn(run, "text")} />
                </p>
              </li>
            ))}
          </ul>
        ) : (
          <p class="quiet">{t.noRuns}</p>
        )}
      </section>
    </>
  );
}

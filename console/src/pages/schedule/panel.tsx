/** One schedule, whole, with its runs and all that can be done with it. */
import { useSignal } from "@preact/signals";
import { chatLink } from "../../lib/chat-link";
import { absolute, duration } from "../../lib/clock";
import { useThing } from "../../lib/resource";
import { ask } from "../../lib/router";
import { visible } from "../../lib/visible";
import { who } from "../../lib/who";
import { Button, CopyButton } from "../../ui/button";
import { Chip, StateChip } from "../../ui/chip";
import { Json } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Fault, Loading, Notice } from "../../ui/state";
import { Ago } from "../../ui/time";
import { step } from "./do";
import { Condition, lateBecause, Left, reason } from "./row";
import { schedulePath, type Schedule } from "./types";
import { shown } from "./when";
import { scheduleWords as words } from "./words";

export function Panel({ id }: { id: string }) {
  const t = words();
  const found = useThing<Schedule>(
    schedulePath(id),
    ["schedule.", "approval."],
    (data) => data.id === id || String(data.id).startsWith("approval_"),
  );
  const fault = useSignal<Error | null>(null);
  const asking = useSignal(false);
  const one = found.value;
  const act = (what: Parameters<typeof step>[1]) => async () => {
    fault.value = null;
    await step(id, what);
    found.reload();
  };
  const onFault = (error: unknown) => (fault.value = error as Error);
  const isOpen = one?.state === "scheduled" || one?.state === "paused";
  return (
    <Dialog
      side
      given={!!one}
      title={one ? one.tool : t.detail}
      onClose={() => ask({ schedule: null })}
      footer={
        one && (
          <>
            {(isOpen || one.state === "expired") && (
              <Button kind="danger" onClick={() => void (asking.value = true)}>
                {t.cancel}
              </Button>
            )}
            <span class="grow" />
            <Button kind="quiet" sign="duplicate" onClick={() => ask({ schedule: null, form: `copy:${id}` }, false)}>
              {t.copy}
            </Button>
            {isOpen && (
              <Button sign="edit" onClick={() => ask({ schedule: null, form: `edit:${id}` }, false)}>
                {t.edit}
              </Button>
            )}
            {one.state === "scheduled" && (
              <Button sign="pause" onFault={onFault} onClick={act("pause")}>
                {t.pause}
              </Button>
            )}
            {one.state === "paused" && (
              <Button sign="play" onFault={onFault} onClick={act("resume")}>
                {t.resume}
              </Button>
            )}
            {(one.state === "scheduled" || one.state === "expired") && (
              <Button kind="primary" sign="play" onFault={onFault} onClick={act("run")}>
                {t.run}
              </Button>
            )}
          </>
        )
      }
    >
      {!one && found.state === "loading" && <Loading />}
      {found.state === "fault" && <Fault error={found.error} retry={found.reload} />}
      {fault.value && <Fault error={fault.value} />}
      {one && <Whole one={one} />}
      {asking.value && (
        <Dialog
          title={t.cancelAsk}
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
                {t.cancel}
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

function Whole({ one }: { one: Schedule }) {
  const t = words();
  const why = reason(one);
  const chat = one.chat_kept ? chatLink(one.chat) : null;
  const ahead = one.state === "scheduled" || one.state === "paused" || one.state === "running";
  return (
    <>
      <div class="row">
        <Condition one={one} />
        <span class="quiet tabular">
          <Left one={one} />
        </span>
      </div>
      {why && (
        <Notice
          tone="warn"
          action={
            one.approval && (
              <a class="button" href="/approvals">
                {t.toApproval}
              </a>
            )
          }
        >
          <span class="sch-why">{visible(why)}</span>
        </Notice>
      )}
      {one.state === "paused" && <Notice>{t.paused}</Notice>}
      <dl class="facts">
        <dt>{ahead ? t.nextRun : t.wasFor}</dt>
        <dd class="tabular" data-given>
          {shown(one.scheduled_for)}
        </dd>
        {one.cron && (
          <>
            <dt>{t.rule}</dt>
            <dd class="mono" data-given>
              {one.cron}
            </dd>
          </>
        )}
        <dt>{t.zone}</dt>
        <dd data-given>{one.zone}</dd>
        <dt>{t.caller}</dt>
        <dd data-given>{visible(one.maid ? `${one.maid} (${who(one.caller)})` : who(one.caller))}</dd>
        <dt>{t.created}</dt>
        <dd>
          <Ago at={one.created} />
        </dd>
        {one.chat && (
          <>
            <dt>{t.chat}</dt>
            <dd data-given>{chat ? <a href={chat}>{visible(one.chat)}</a> : visible(one.chat)}</dd>
          </>
        )}
        <dt>{t.id}</dt>
        <dd class="mono sch-id">
          <span data-given>{one.id}</span>
          <CopyButton text={one.id} />
        </dd>
      </dl>
      <Json label={t.arguments} value={one.arguments} />
      <section class="stack" aria-label={t.runs}>
        <h3>{t.runs}</h3>
        {one.runs.length ? (
          <ul class="sch-past">
            {[...one.runs].reverse().map((run, at) => (
              <li key={at}>
                <StateChip state={run.state} />
                {run.late_s && <Chip tone="warn">{t.lateBy(duration(Math.floor(run.late_s)))}</Chip>}
                <time class="tabular">{absolute(run.at)}</time>
                {run.call_id && <a href={`/activity?call=${encodeURIComponent(run.call_id)}`}>{t.open}</a>}
                {run.late_because && <p class="quiet">{lateBecause(run.late_because)}</p>}
                <p class="quiet" data-given>
                  {visible(run.text)}
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

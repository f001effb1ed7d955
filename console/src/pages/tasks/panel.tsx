/** One task, whole: its result first, then its facts, its callbacks, who was told of it, and where it stands in for a
 * placeholder. */
import { useSignal } from "@preact/signals";
import type { TaskDetail } from "toolyard-client";
import { chatLink } from "../../lib/chat-link";
import { formatAbsolute } from "../../lib/clock";
import { messageIn } from "../../lib/messages";
import { useResource } from "../../lib/resource";
import { setQuery } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Button, CopyButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Code, Json } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { MessageText } from "../../ui/message-text";
import { Copyable } from "../../ui/copyable";
import { Fault, Loading } from "../../ui/state";
import { Ago, Elapsed } from "../../ui/time";
import { Callbacks } from "./callbacks";
import { cancel, markFailed, retry } from "./actions";
import { Limit } from "./limit";
import { Pushes } from "./pushes";
import { TaskResult } from "./result";
import { placeholder, isRunning, taskPath, titleOf } from "./types";
import { taskWords as words } from "./words";

export function Panel({ id }: { id: string }) {
  const t = words();
  const detail = useResource<TaskDetail>(taskPath(id), ["task."], (data) => data.id === id);
  const failing = useSignal(false);
  const fault = useSignal<Error | null>(null);
  const task = detail.value;
  const onFault = (error: unknown) => (fault.value = error as Error);
  return (
    <Dialog
      side
      given={!!task}
      title={task ? titleOf(task) : t.detail}
      onClose={() => setQuery({ task: null })}
      footer={
        task && (
          <>
            <CopyButton short={false} label={t.copy} text={placeholder(task)} />
            <span class="grow" />
            {isRunning(task) && (
              <Button kind="quiet" onClick={() => void (failing.value = true)}>{`${t.fail}…`}</Button>
            )}
            {isRunning(task) && (
              <Button kind="danger" onFault={onFault} onClick={() => cancel(id).then(detail.reload)}>
                {t.cancel}
              </Button>
            )}
            <Button sign="retry" onFault={onFault} onClick={() => retry(id)}>
              {t.retry}
            </Button>
          </>
        )
      }
    >
      {!task && detail.state === "loading" && <Loading />}
      {detail.state === "fault" && <Fault error={detail.error} retry={detail.reload} />}
      {fault.value && <Fault error={fault.value} />}
      {task && <TaskView task={task} onFault={onFault} />}
      {failing.value && (
        <FailDialog
          id={id}
          onClose={() => (failing.value = false)}
          onDone={() => {
            failing.value = false;
            detail.reload();
          }}
        />
      )}
    </Dialog>
  );
}

function TaskView({ task, onFault }: { task: TaskDetail; onFault: (error: unknown) => void }) {
  const t = words();
  const chat = task.chat_kept ? chatLink(task.chat) : null;
  return (
    <>
      <div class="row">
        <StateChip state={task.state} />
        <Elapsed from={task.created} to={isRunning(task) ? null : task.updated} />
        <Limit task={task} />
      </div>
      <TaskResult result={task.result} />
      <dl class="facts">
        {task.message && (
          <>
            <dt>{t.message}</dt>
            <dd>
              <MessageText message={messageIn(task, "message")} />
            </dd>
          </>
        )}
        <dt>{t.created}</dt>
        <dd data-given>{formatAbsolute(task.created)}</dd>
        <dt>{t.updated}</dt>
        <dd>
          <Ago at={task.updated} />
        </dd>
        <dt>{t.deadline}</dt>
        <dd data-given>{formatAbsolute(task.deadline)}</dd>
        <dt>{t.caller}</dt>
        <dd data-given>{revealHidden(callerName(task.caller))}</dd>
        <dt>{t.call}</dt>
        <dd>
          <Copyable text={task.call_id} href={`/activity?call=${encodeURIComponent(task.call_id)}`} />
        </dd>
        {task.chat && (
          <>
            <dt>{t.chat}</dt>
            <dd data-given>{chat ? <a href={chat}>{revealHidden(task.chat)}</a> : revealHidden(task.chat)}</dd>
          </>
        )}
        <dt>{t.taskId}</dt>
        <dd>
          <Copyable text={task.task_id} />
        </dd>
        <dt>{t.id}</dt>
        <dd>
          <Copyable text={task.id} />
        </dd>
      </dl>
      <Callbacks task={task} />
      <Pushes task={task} onFault={onFault} />
      {Object.keys(task.progress ?? {}).length > 0 && <Json label={t.progress} value={task.progress} />}
      {task.receipt && <Code label={t.receipt} text={task.receipt} />}
      <div class="stack">
        <Code label={t.placeholderName} text={placeholder(task)} />
        <p class="faint">{t.placeholderText}</p>
      </div>
      <Json label={t.arguments} value={task.arguments} />
    </>
  );
}

function FailDialog({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const t = words();
  const reason = useSignal("");
  const fault = useSignal<Error | null>(null);
  return (
    <Dialog
      title={t.failAsk}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.keep}</Button>
          <Button
            kind="danger"
            onFault={(error) => (fault.value = error as Error)}
            onClick={() => markFailed(id, reason.value.trim()).then(onDone)}
          >
            {t.fail}
          </Button>
        </>
      }
    >
      <p>{t.failText}</p>
      <TextField label={t.reason} value={reason.value} onInput={(value) => (reason.value = value)} />
      {fault.value && <Fault error={fault.value} />}
    </Dialog>
  );
}

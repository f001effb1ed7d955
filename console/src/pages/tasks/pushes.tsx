/** Whom the plugin has told of the result, beside everyone who follows the events: when, and who took it. */
import type { PushRow, TaskDetail } from "toolyard-client";
import { formatAbsolute } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { pushAgain } from "./actions";
import { taskWords as words } from "./words";

export function Pushes({ task, onFault }: { task: TaskDetail; onFault: (error: unknown) => void }) {
  const t = words();
  const { push, pushes = [] } = task;
  const canSend = push?.open && task.result !== null && task.result !== undefined;
  return (
    <section class="stack" aria-label={t.push}>
      <div class="row">
        <h3 class="grow">{t.push}</h3>
        {canSend && (
          <Button sign="send" onFault={onFault} onClick={() => pushAgain(task.id)}>
            {t.sendAgain}
          </Button>
        )}
      </div>
      {push ? (
        <dl class="facts">
          <dt>{t.pushTo}</dt>
          <dd>{push.target ? <code>{revealHidden(push.target)}</code> : t.everyClient}</dd>
          <dt>{t.messageType}</dt>
          <dd>
            <code>{revealHidden(push.type)}</code>
          </dd>
        </dl>
      ) : (
        <p class="quiet">{t.pushNone}</p>
      )}
      {push && !push.open && (
        <p class="quiet">
          {t.pushClosed} <code>vcp_channels</code>
        </p>
      )}
      {pushes.length > 0 && (
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">{t.at}</th>
              <th scope="col">{t.delivered}</th>
            </tr>
          </thead>
          <tbody>
            {pushes.map((one) => (
              <tr key={one.seq}>
                <td class="tabular">
                  <time>{formatAbsolute(one.at)}</time>
                </td>
                <td>
                  <span class="row">
                    <Delivery one={one} />
                    {one.again && <span class="faint">{t.sentAgain}</span>}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Delivery({ one }: { one: PushRow }) {
  const t = words();
  if (!one.clients) return <Chip tone="warn">{t.nobody}</Chip>;
  return (
    <Chip tone={one.reached === one.clients ? "good" : "warn"}>
      {one.reached === one.clients ? t.received(one.reached) : t.receivedBySome(one.reached, one.clients)}
    </Chip>
  );
}

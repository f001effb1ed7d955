/** The callbacks that came for a task, each with what it was answered and why. */
import type { CallbackRow, TaskDetail } from "toolyard-client";
import { formatAbsolute } from "../../lib/clock";
import { Chip, stateWord } from "../../ui/chip";
import { taskWords as words } from "./words";

export function Callbacks({ task }: { task: TaskDetail }) {
  const t = words();
  const rows = task.callbacks ?? [];
  return (
    <section class="stack" aria-label={t.callbacks}>
      <h3>{t.callbacks}</h3>
      {rows.length ? (
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">{t.at}</th>
              <th scope="col">{t.what}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((one, at) => (
              <tr key={at}>
                <td class="tabular">
                  <time>{formatAbsolute(one.at)}</time>
                </td>
                <td>
                  <Result one={one} state={task.state} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="quiet">{t.noCallbacks}</p>
      )}
    </section>
  );
}

function Result({ one, state }: { one: CallbackRow; state: string }) {
  const t = words();
  const why = one.status === 401 ? t.wrongToken : one.status === 409 ? t.tooLate(stateWord(state)) : "";
  return (
    <>
      <span class="row">
        <Chip tone={one.result === "accepted" ? "good" : one.result === "refused" ? "bad" : "plain"}>
          {t[one.result]}
        </Chip>
        {one.status && <code class="faint">{one.status}</code>}
      </span>
      {why && <p class="faint">{why}</p>}
    </>
  );
}

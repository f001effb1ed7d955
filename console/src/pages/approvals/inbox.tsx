/** Pending approvals. Deny has the focus when the page opens on a card, and whenever nothing else has it. */
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { api } from "../../lib/api";
import { formatNumber } from "../../lib/language";
import { setQuery } from "../../lib/router";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading } from "../../ui/state";
import { AnswerAll, sendAnswer } from "./actions";
import { Card } from "./card";
import { holdPresses } from "./press-guard";
import { mainArgumentIn } from "./main-argument-in";
import { Outcome } from "./outcome";
import { nameOf, type Approval } from "./types";
import { useApproval } from "./use-approval";
import type { Inbox as Held } from "./use-inbox";
import { approvalWords as words } from "./words";

const FIRST = 20;

export function Inbox({ inbox }: { inbox: Held }) {
  const t = words();
  const denies = useRef(new Map<string, HTMLButtonElement>());
  const most = useSignal(FIRST);
  const first = inbox.open[0]?.id;
  useEffect(() => {
    const at = document.activeElement;
    if (!first || (at && at !== document.body && at.id !== "main" && at.closest("#main"))) return;
    if (document.querySelector("dialog[open]")) return;
    holdPresses();
    denies.current.get(first)?.focus({ preventScroll: true });
  }, [first]);
  if (inbox.state === "loading" && !inbox.all.length) return <Loading rows={3} />;
  if (inbox.state === "fault" && !inbox.all.length) return <Fault error={inbox.error} retry={inbox.reload} />;
  const isOpen = new Set(inbox.open.map((one) => one.id));
  const cards = inbox.all.slice(0, most.value);
  return (
    <>
      {inbox.state === "fault" && <Fault error={inbox.error} retry={inbox.reload} />}
      <div class="apr-list">
        {cards.map((one) => {
          if (!isOpen.has(one.id)) return <Outcome key={one.id} one={one} />;
          const together = listTogether(cards, isOpen, one);
          return (
            <Fragment key={one.id}>
              <InboxCard
                row={one}
                sticky={one.id === first}
                settle={inbox.settle}
                same={one.digest ? inbox.open.filter((other) => other.digest === one.digest) : []}
                denyRef={(node) => void (node ? denies.current.set(one.id, node) : denies.current.delete(one.id))}
              />
              {together.length > 0 && (
                <AnswerAll
                  ids={together.map((other) => other.id)}
                  names={together.map(rowTitle)}
                  settle={inbox.settle}
                />
              )}
            </Fragment>
          );
        })}
      </div>
      {inbox.all.length > cards.length && (
        <Button
          onClick={() => void (most.value += FIRST)}
        >{`+ ${formatNumber(inbox.all.length - cards.length)}`}</Button>
      )}
      {!inbox.open.length && (
        <Empty
          sign="approvals"
          title={t.none}
          action={<Button onClick={() => setQuery({ tab: "rules" })}>{t.seeRules}</Button>}
        >
          {t.noneText}
        </Empty>
      )}
    </>
  );
}

/** The calls of one chat that wait together, at the last of their cards; none if they are the same call, whose cards
 * have an answer for all of them. */
function listTogether(cards: readonly Approval[], isOpen: ReadonlySet<string>, one: Approval): Approval[] {
  const together = one.chat ? cards.filter((other) => other.chat === one.chat && isOpen.has(other.id)) : [];
  const isSame = together.every((other) => other.digest === one.digest);
  return together.length > 1 && !isSame && together[together.length - 1]!.id === one.id ? together : [];
}

function rowTitle(row: Approval): string {
  return [nameOf(row), mainArgumentIn(row.summary ?? "")].filter(Boolean).join(" · ");
}

function InboxCard(given: Omit<Parameters<typeof Card>[0], "detail">) {
  return <Card {...given} detail={useApproval(given.row.id)} />;
}

export function DenyAll({ inbox }: { inbox: Held }) {
  const t = words();
  const asking = useSignal(false);
  const fault = useSignal<Error | null>(null);
  const count = inbox.open.length;
  const deny = async () => {
    const ids = inbox.open.map((one) => one.id);
    for (let at = 0; at < ids.length; at += 100)
      await sendAnswer(() => api("/v1/approvals/bulk", { body: { ids: ids.slice(at, at + 100), effect: "deny" } }));
    await Promise.all(ids.map(inbox.settle));
    asking.value = false;
  };
  return (
    <>
      {count > 1 && (
        <Button kind="danger" onClick={() => void (asking.value = true)}>
          {t.denyAll(count)}
        </Button>
      )}
      {inbox.all.length > count && (
        <Button kind="quiet" onClick={inbox.clear}>
          {t.clear}
        </Button>
      )}
      {asking.value && (
        <Dialog
          title={t.denyAllAsk(count)}
          onClose={() => (asking.value = false)}
          footer={
            <>
              <Button onClick={() => void (asking.value = false)}>{t.cancel}</Button>
              <Button kind="danger" onFault={(error) => (fault.value = error as Error)} onClick={deny}>
                {t.denyAll(count)}
              </Button>
            </>
          }
        >
          <p>{t.denyAllText}</p>
          {fault.value && <Fault title={t.failed} error={fault.value} />}
        </Dialog>
      )}
    </>
  );
}

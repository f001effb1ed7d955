/** One approval at an address of its own, for links in messages and notices: it is answered right here, or tells how
 * it was answered. */
import { useEffect, useRef } from "preact/hooks";
import { pendingApprovals } from "../../lib/counters";
import { navigate } from "../../lib/router";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { revealHidden } from "../../lib/hidden-characters";
import { Answered } from "./answered";
import { Card } from "./card";
import { nameOf } from "./types";
import { useApproval } from "./use-approval";
import { approvalWords as words } from "./words";

export function OneApproval({ id }: { id: string }) {
  const t = words();
  const detail = useApproval(id);
  const one = detail.value;
  const deny = useRef<HTMLButtonElement | null>(null);
  const seenPending = useRef(false);
  const isPending = one?.state === "pending";
  if (isPending) seenPending.current = true;
  useEffect(() => {
    if (isPending) deny.current?.focus({ preventScroll: true });
  }, [isPending]);
  const others = pendingApprovals.value.filter((other) => other.id !== id).length;
  return (
    <div class="page apr">
      <div class="head">
        <h1>{t.detail}</h1>
        <span class="grow" />
        <a class="button quiet" href="/approvals">
          <Icon sign="approvals" size={16} />
          <span>{others ? t.toOthers(others) : t.toAll}</span>
        </a>
      </div>
      {!one && detail.state === "loading" && <Loading rows={3} />}
      {!one && detail.state === "fault" && detail.error?.status !== 404 && (
        <Fault error={detail.error} retry={detail.reload} />
      )}
      {!one && detail.error?.status === 404 && (
        <Empty
          sign="approvals"
          title={t.missing}
          action={<Button onClick={() => navigate("/approvals")}>{t.toAll}</Button>}
        >
          {t.missingText}
        </Empty>
      )}
      {one && isPending && (
        <Card row={one} detail={detail} sticky settle={detail.reload} denyRef={(node) => void (deny.current = node)} />
      )}
      {one && !isPending && (
        <article class="card stack" aria-labelledby={`${id}-name`}>
          <h2 id={`${id}-name`} class="mono" data-given>
            {revealHidden(nameOf(one))}
          </h2>
          {!seenPending.current && <Notice>{t.alreadyAnswered}</Notice>}
          <Answered one={one} />
        </article>
      )}
    </div>
  );
}

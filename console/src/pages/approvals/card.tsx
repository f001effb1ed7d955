/** One call that asks: what, why, for whom, with which arguments, what it would change, and how long there is left. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { chatLink } from "../../lib/chat-link";
import { now } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Chip, type Tone } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { filesFrom, Patch } from "../../ui/patch";
import { Fault, Loading, Notice } from "../../ui/state";
import { Ago, Countdown } from "../../ui/time";
import { Actions } from "./actions";
import { Arguments } from "./arguments";
import { holdPresses } from "./press-guard";
import { nameOf, type Approval } from "./types";
import { approvalWords as words, riskOf, whyOf } from "./words";

const RISKS: Record<string, Tone> = { read: "plain", write: "warn", network: "info", execute: "bad" };

export function Card({
  row,
  first,
  settle,
  denyRef,
  same,
}: {
  row: Approval;
  first: boolean;
  settle: (id: string) => Promise<void>;
  denyRef: (node: HTMLButtonElement | null) => void;
  same: readonly Approval[];
}) {
  const t = words();
  const detail = useResource<Approval>(`/v1/approvals/${encodeURIComponent(row.id)}`);
  const since = useRef(performance.now());
  const fault = useSignal<Error | null>(null);
  const one = { ...row, ...detail.value };
  const ready = detail.value !== null; // nobody allows what they cannot see in full
  // What arrives may push the buttons down: the next press must not land on another than was aimed at.
  useEffect(() => {
    if (ready) holdPresses();
  }, [ready]);
  return (
    <article class={`card apr-card${first ? " apr-first" : ""}`} aria-labelledby={`${row.id}-name`}>
      <Head one={one} />
      {ready ? (
        <Body one={one} />
      ) : detail.state === "loading" ? (
        <div class="apr-body">
          <Loading rows={3} />
        </div>
      ) : null}
      {detail.state === "fault" && <Fault title={t.detailFailed} error={detail.error} retry={detail.reload} />}
      {fault.value && <Fault title={t.failed} error={fault.value} />}
      <Actions
        one={one}
        same={same}
        ready={ready}
        since={since.current}
        settle={settle}
        denyRef={denyRef}
        onFault={(error) => (fault.value = error as Error)}
      />
    </article>
  );
}

function Head({ one }: { one: Approval }) {
  const t = words();
  const chat = chatLink(one.chat);
  return (
    <header class="apr-head">
      <div class="apr-name">
        <h2 id={`${one.id}-name`} class="mono" data-given>
          {revealHidden(nameOf(one))}
        </h2>
        <Chip tone={one.protected ? "bad" : (RISKS[one.risk] ?? "plain")}>{riskOf(t, one.risk)}</Chip>
        {one.expires && <TimeLeft from={one.created} to={one.expires} />}
      </div>
      <p>{whyOf(t, one.because, one.reason)}</p>
      <p class="faint apr-from">
        <span>
          {t.requestedBy(revealHidden(one.maid ? `${one.maid} (${callerName(one.caller)})` : callerName(one.caller)))}
        </span>
        <span aria-hidden="true">·</span>
        <Ago at={one.created} />
        {chat && (
          <>
            <span aria-hidden="true">·</span>
            <a href={chat}>{t.openChat}</a>
          </>
        )}
        <span aria-hidden="true">·</span>
        <a href={`/activity?call=${encodeURIComponent(one.call_id)}`}>{t.openCall}</a>
      </p>
    </header>
  );
}

function TimeLeft({ from, to }: { from: number; to: number }) {
  const t = words();
  const left = to - now.value / 1000;
  const share = Math.max(0, Math.min(1, left / Math.max(1, to - from)));
  return (
    <span class={`apr-left${left < 30 ? " soon" : ""}`}>
      <Icon sign="clock" size={15} />
      {left > 0 ? (
        <>
          <span class="apr-left-words">{t.left}</span> <Countdown to={to} />
        </>
      ) : (
        t.over
      )}
      <i aria-hidden="true">
        <b style={{ width: `${share * 100}%` }} />
      </i>
    </span>
  );
}

/** The effects of a call, also of those that were answered. */
export function Body({ one }: { one: Approval }) {
  const t = words();
  const files = useMemo(() => filesFrom(one.patch), [one.patch]);
  return (
    <div class="apr-body">
      {one.excerpt && (
        <Part title={t.lastMessage}>
          <blockquote data-given>{revealHidden(one.excerpt)}</blockquote>
        </Part>
      )}
      <Arguments
        value={one.arguments}
        hidden={one.hidden}
        reveal={one.state === "pending" ? `/v1/approvals/${encodeURIComponent(one.id)}/arguments` : undefined}
      />
      {files.length > 0 && (
        <Part title={t.changes}>
          <div class="apr-patch">
            <Patch files={files} />
          </div>
        </Part>
      )}
      {one.patch_problem && <Notice tone="warn">{t.noPatch(revealHidden(one.patch_problem))}</Notice>}
      {one.command_line && one.command_line.length > 0 && (
        <Code label={t.commandLine} text={one.command_line.map(quoteWord).join(" ")} />
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="apr-part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** A word as a shell would need it: what belongs together is seen as one. */
function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** One call that asks: what, why, for whom, what it would change, with which arguments, and how long there is left.
 * The same card stands on the page of approvals, at an address of its own, and in the chat that asked. */
import { useSignal } from "@preact/signals";
import { Fragment, type ComponentChildren } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { chatLink } from "../../lib/chat-link";
import { now } from "../../lib/clock";
import { messageIn } from "../../lib/messages";
import type { Resource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Chip, type Tone } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { MessageText } from "../../ui/message-text";
import { filesFrom, Patch, type PatchFile } from "../../ui/patch";
import { Fault, Loading, Notice } from "../../ui/state";
import { Ago, Countdown } from "../../ui/time";
import { Actions, type Settle } from "./actions";
import { Arguments } from "./arguments";
import { holdPresses } from "./press-guard";
import { nameOf, type Approval } from "./types";
import { approvalPath } from "./use-approval";
import { approvalWords as words, riskOf, whyOf } from "./words";

const RISKS: Record<string, Tone> = { read: "plain", write: "warn", network: "info", execute: "bad" };

interface Given {
  /** The approval as far as it is known before all of it is loaded. */
  row: Approval;
  detail: Resource<Approval>;
  /** In a chat, what the reader sees around the card is left out. */
  inChat?: boolean;
  /** The bar of answers stays in view. */
  sticky?: boolean;
  same?: readonly Approval[];
  settle: Settle;
  denyRef?: (node: HTMLButtonElement | null) => void;
}

export function Card({ row, detail, inChat = false, sticky = false, same = [], settle, denyRef }: Given) {
  const t = words();
  const fault = useSignal<Error | null>(null);
  const one = { ...row, ...detail.value };
  const ready = detail.value !== null; // nobody allows what they cannot see in full
  // What appears or arrives may push buttons down: the next press must not land on another than was aimed at.
  useLayoutEffect(holdPresses, [ready]);
  return (
    <article class={`card apr-card${sticky ? " apr-sticky" : ""}`} aria-labelledby={`${row.id}-name`}>
      <Head one={one} inChat={inChat} />
      {ready ? (
        <Body one={one} inChat={inChat} />
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
        settle={settle}
        denyRef={denyRef}
        onFault={(error) => (fault.value = error as Error)}
      />
    </article>
  );
}

function Head({ one, inChat }: { one: Approval; inChat: boolean }) {
  const t = words();
  const chat = chatLink(one.chat);
  const links = [
    ...(chat && !inChat ? [{ href: chat, name: t.openChat }] : []),
    { href: `/activity?call=${encodeURIComponent(one.call_id)}`, name: t.openCall },
    ...(inChat ? [{ href: "/approvals", name: t.toAll }] : []),
  ];
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
        {links.map(({ href, name }) => (
          <Fragment key={href}>
            <span aria-hidden="true">·</span>
            <a href={href}>{name}</a>
          </Fragment>
        ))}
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

/** The effects of a call, also of those that were answered: what it changes first, then all that it was given. */
export function Body({
  one,
  changed,
  inChat = false,
}: {
  one: Approval;
  /** What the call has changed; else what it would. */
  changed?: PatchFile[];
  inChat?: boolean;
}) {
  const t = words();
  const files = useMemo(() => changed ?? filesFrom(one.patch), [changed, one.patch]);
  return (
    <div class="apr-body">
      {files.length > 0 && (
        <Part title={t.changes}>
          <div class="apr-patch">
            <Patch files={files} />
          </div>
        </Part>
      )}
      {one.patch_problem && (
        <Notice tone="warn">
          {t.noPatch} <MessageText message={messageIn(one, "patch_problem")} />
        </Notice>
      )}
      {one.command_line && one.command_line.length > 0 && (
        <Code label={t.commandLine} text={one.command_line.map(quoteWord).join(" ")} />
      )}
      <Arguments
        value={one.arguments}
        hidden={one.hidden}
        reveal={one.state === "pending" ? `${approvalPath(one.id)}/arguments` : undefined}
      />
      {one.excerpt && !inChat && (
        <Part title={t.lastMessage}>
          <blockquote dir="auto" data-given>
            {revealHidden(one.excerpt)}
          </blockquote>
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="apr-part" role="group" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** A word as a shell would need it: what belongs together is seen as one. */
function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

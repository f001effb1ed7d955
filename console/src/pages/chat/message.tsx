/** One message: what the user said as text, or a reply with its thinking, text and tool calls in their order. */
import { useSignal, type Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { withQuery } from "../../lib/api";
import { toAddress } from "../../lib/base";
import { formatAbsolute } from "../../lib/clock";
import { copyText } from "../../lib/copy";
import { dateFormat } from "../../lib/language";
import { setQuery } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { Button, CopyButton, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { MoreMenu, type MenuItem } from "../../ui/menu";
import { Notice } from "../../ui/state";
import { Ago } from "../../ui/time";
import { AttachmentChips } from "./attachment-chips";
import { answerToCopy } from "./answer";
import { branchesAt } from "./branches";
import { Calls } from "./calls";
import type { Cell, Conversation } from "./conversation";
import { EditMessage } from "./edit-message";
import { messageToMarkdown } from "./markdown";
import { Pictures } from "./pictures";
import { ReplyTokens } from "./token-use";
import { ReplyError } from "./reply-error";
import { answerOf, type Call, type Message, type Piece } from "./model";
import { useNearView } from "./use-near-view";
import type { ShownTasks } from "./tasks";
import { TextPiece } from "./text";
import { ThinkingFold } from "./thinking";
import { Waiting } from "./waiting";
import { words } from "./words";
import { threadWords } from "./words-thread";

export interface MessageActions {
  /** Ask for the reply once more. */
  onAgain: (reply: Message) => void;
  onResend: (message: Message, text: string) => void;
  /** Show the branch before or after that of this message. */
  onWalk: (cell: Cell, step: -1 | 1) => void;
}

export function MessageView({
  conversation,
  cell,
  last,
  actions,
}: {
  conversation: Conversation;
  cell: Cell;
  last: boolean;
  actions: MessageActions;
}) {
  const t = words();
  const message = cell.at.value;
  const box = useRef<HTMLElement>(null);
  const near = useNearView(box, message.state === "running" || last, 900);
  const user = message.role === "user";
  return (
    <article
      ref={box}
      class={`chat-message ${message.role}`}
      aria-label={user ? t.you : t.assistant}
      data-row
      data-id={cell.id}
      tabIndex={-1}
    >
      {user ? (
        <UserMessage conversation={conversation} cell={cell} message={message} actions={actions} />
      ) : (
        <Reply conversation={conversation} cell={cell} message={message} near={near} last={last} actions={actions} />
      )}
    </article>
  );
}

interface Shown {
  conversation: Conversation;
  cell: Cell;
  message: Message;
  actions: MessageActions;
}

function UserMessage({ conversation, cell, message, actions }: Shown) {
  const t = words(),
    own = threadWords();
  const editing = useSignal(false);
  const edit = useRef<HTMLButtonElement>(null);
  const close = () => {
    editing.value = false;
    requestAnimationFrame(() => edit.current?.focus());
  };
  if (editing.value)
    return (
      <EditMessage
        text={message.text}
        busy={conversation.running.value}
        onClose={close}
        onSend={(text) => {
          editing.value = false;
          actions.onResend(message, text);
        }}
      />
    );
  return (
    <>
      <div class="chat-bubble" dir="auto" data-given>
        <Pictures sources={message.images} />
        <AttachmentChips attachments={message.attachments} />
        {message.text}
      </div>
      <div class="chat-foot">
        <CopyButton label={t.copyText} text={message.text} />
        <IconButton
          label={own.edit}
          sign="edit"
          inner={edit}
          disabled={conversation.running.value}
          onClick={() => (editing.value = true)}
        />
        <Branches conversation={conversation} cell={cell} onWalk={actions.onWalk} />
      </div>
    </>
  );
}

/** The versions of a message, one of which is in view. */
function Branches({
  conversation,
  cell,
  onWalk,
}: Pick<Shown, "conversation" | "cell"> & Pick<MessageActions, "onWalk">) {
  const t = threadWords();
  const branches = branchesAt(conversation.all.value, cell);
  const at = branches.findIndex((one) => one.id === cell.id);
  if (branches.length < 2) return null;
  return (
    <span class="chat-branches" role="group" aria-label={t.versionOf(at + 1, branches.length)}>
      <IconButton label={t.previousVersion} sign="left" disabled={at === 0} onClick={() => onWalk(cell, -1)} />
      <span aria-hidden="true">
        {at + 1}/{branches.length}
      </span>
      <IconButton
        label={t.nextVersion}
        sign="right"
        disabled={at === branches.length - 1}
        onClick={() => onWalk(cell, 1)}
      />
    </span>
  );
}

function Reply({ conversation, cell, message, near, last, actions }: Shown & { near: boolean; last: boolean }) {
  const t = words(),
    own = threadWords();
  const at: Signal<Message> = cell.at;
  const onAgain = conversation.running.value ? undefined : () => actions.onAgain(message);
  const growing = message.state === "running";
  const answer = answerOf(message);
  const shownTasks: ShownTasks = useSignal(new Map());
  const mark = (id: string, answered: string) => {
    at.value = {
      ...at.peek(),
      pieces: at
        .peek()
        .pieces.map((piece) => (piece.kind === "call" && piece.id === id ? { ...piece, answered } : piece)),
    };
  };
  const groups = groupCalls(message.pieces);
  return (
    <>
      {groups.map((group, n) => {
        const end = n === groups.length - 1,
          writing = growing && end;
        if (Array.isArray(group))
          return <Calls key={n} calls={group} growing={growing} shownTasks={shownTasks} onMark={mark} />;
        if (group.kind === "thinking")
          return <ThinkingFold key={n} text={group.text} ms={group.ms} growing={writing} />;
        return (
          <TextPiece
            key={n}
            text={group.text}
            growing={writing}
            cut={end && (message.state === "failed" || message.state === "stopped")}
            near={near}
            shownTasks={shownTasks}
            onAgain={onAgain}
          />
        );
      })}
      {growing && <Waiting message={message} />}
      {message.gap && <p class="faint">{t.gap}</p>}
      {isEmptyReply(message) && (
        <Notice
          action={
            onAgain && (
              <Button sign="retry" onClick={onAgain}>
                {t.retry}
              </Button>
            )
          }
        >
          {t.emptyReply}
        </Notice>
      )}
      {message.fault && <ReplyError fault={message.fault} hasText={message.pieces.length > 0} onAgain={onAgain} />}
      {!growing && (
        <div class="chat-foot">
          {answer && <CopyButton label={t.copyAnswer} text={() => answerToCopy(message)} />}
          {onAgain && !message.fault && !isEmptyReply(message) && (
            <IconButton label={message.state === "failed" ? t.retry : own.regenerate} sign="retry" onClick={onAgain} />
          )}
          {last && <IconButton label={t.sent} sign="request" onClick={() => setQuery({ open: "sent" }, false)} />}
          <MoreMenu label={own.replyMenu} items={replyActions(conversation, message)} />
          <Branches conversation={conversation} cell={cell} onWalk={actions.onWalk} />
          <span class="faint chat-facts">
            {message.state === "stopped" && (
              <span class="chat-stopped">
                <Icon sign="stop" size={13} /> {t.stopped}
              </span>
            )}
            <span data-given>{message.model}</span>
            <ReplyTokens usage={message.usage} />
            {message.rounds > 0 && <span>{t.rounds(message.rounds)}</span>}
            {last ? (
              <Ago at={message.at} />
            ) : (
              <time dateTime={new Date(message.at * 1000).toISOString()} title={formatAbsolute(message.at)}>
                {day(message.at)}
              </time>
            )}
          </span>
        </div>
      )}
    </>
  );
}

/** True if a reply has ended and says nothing, neither after its last call nor without one. */
function isEmptyReply({ state, pieces, fault, gap }: Message): boolean {
  const isBlank = (piece: Piece) => piece.kind === "thinking" || (piece.kind === "text" && !piece.text.trim());
  return state === "done" && !fault && !gap && pieces.every(isBlank);
}

function replyActions(conversation: Conversation, message: Message): MenuItem[] {
  const t = threadWords();
  const copy = async (text: string | Promise<string>) => {
    if (await copyText(await text)) showToast(t.copied);
  };
  const link = () => location.origin + toAddress(withQuery(`/chat/${conversation.id}`, { at: message.id }));
  const hasCalls = message.pieces.some((piece) => piece.kind === "call");
  return [
    ...(hasCalls
      ? [{ name: t.copyWithCalls, sign: "copy" as const, run: () => copy(messageToMarkdown(message)) }]
      : []),
    { name: t.copyLink, sign: "link", run: () => copy(link()) },
  ];
}

/** A time that stands still: a thousand of them that tick would keep the page busy. */
function day(at: number): string {
  const shape = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false } as const;
  return dateFormat(shape).format(at * 1000);
}

/** Calls that follow each other stand together. */
function groupCalls(pieces: readonly Piece[]): (Exclude<Piece, Call> | Call[])[] {
  const groups: (Exclude<Piece, Call> | Call[])[] = [];
  for (const piece of pieces) {
    const before = groups[groups.length - 1];
    if (piece.kind !== "call") groups.push(piece);
    else if (Array.isArray(before)) before.push(piece);
    else groups.push([piece]);
  }
  return groups;
}

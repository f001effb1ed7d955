/** One message: what the user said as text, or a reply with its thinking, text and tool calls in their order. */
import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { formatAbsolute } from "../../lib/clock";
import { locale } from "../../lib/language";
import { setQuery } from "../../lib/router";
import { CopyButton, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Ago } from "../../ui/time";
import { AttachmentChips } from "./attachment-chips";
import { answerToCopy } from "./answer";
import { Calls } from "./calls";
import { ReplyTokens } from "./token-use";
import { ReplyError } from "./reply-error";
import { answerOf, type Call, type Message, type Piece } from "./model";
import { useNearView } from "./use-near-view";
import { TextPiece } from "./text";
import { ThinkingFold } from "./thinking";
import { words } from "./words";

interface Shown {
  at: Signal<Message>;
  last: boolean;
  onAgain: () => void;
}

export function MessageView({ at, last, onAgain }: Shown) {
  const t = words();
  const message = at.value;
  const box = useRef<HTMLElement>(null);
  const near = useNearView(box, message.state === "running" || last, 900);
  const user = message.role === "user";
  return (
    <article
      ref={box}
      class={`chat-message ${message.role}`}
      aria-label={user ? t.you : t.assistant}
      data-row
      tabIndex={-1}
    >
      {user ? (
        <UserMessage message={message} />
      ) : (
        <Reply at={at} message={message} near={near} last={last} onAgain={onAgain} />
      )}
    </article>
  );
}

function UserMessage({ message }: { message: Message }) {
  const t = words();
  return (
    <>
      <div class="chat-bubble" data-given>
        {message.images.length > 0 && (
          <div class="chat-images">
            {message.images.map((source, at) => (
              <img key={at} src={source} alt={t.picture} />
            ))}
          </div>
        )}
        <AttachmentChips attachments={message.attachments} />
        {message.text}
      </div>
      <div class="chat-foot">
        <CopyButton label={t.copyText} text={message.text} />
      </div>
    </>
  );
}

function Reply({
  at,
  message,
  near,
  last,
  onAgain,
}: {
  at: Signal<Message>;
  message: Message;
  near: boolean;
  last: boolean;
  onAgain: () => void;
}) {
  const t = words();
  const growing = message.state === "running";
  const answer = answerOf(message);
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
          return (
            <Calls key={n} calls={group} growing={growing} mentioned={(id) => answer.includes(id)} onMark={mark} />
          );
        if (group.kind === "thinking")
          return <ThinkingFold key={n} text={group.text} ms={group.ms} growing={writing} />;
        return (
          <TextPiece
            key={n}
            text={group.text}
            growing={writing}
            cut={end && (message.state === "failed" || message.state === "stopped")}
            near={near}
            onAgain={last ? onAgain : undefined}
          />
        );
      })}
      {growing && (
        <div class="chat-writing" role="status" aria-label={t.writing}>
          <i />
          <i />
          <i />
        </div>
      )}
      {message.gap && <p class="faint">{t.gap}</p>}
      {message.fault && (
        <ReplyError fault={message.fault} hasText={message.pieces.length > 0} onAgain={last ? onAgain : undefined} />
      )}
      {!growing && (
        <div class="chat-foot">
          {answer && <CopyButton label={t.copyAnswer} text={() => answerToCopy(message)} />}
          {last && <IconButton label={t.retry} sign="retry" onClick={onAgain} />}
          {last && <IconButton label={t.sent} sign="eye" onClick={() => setQuery({ open: "sent" }, false)} />}
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

/** A time that stands still: a thousand of them that tick would keep the page busy. */
function day(at: number): string {
  return new Intl.DateTimeFormat(locale(), {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  }).format(new Date(at * 1000));
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

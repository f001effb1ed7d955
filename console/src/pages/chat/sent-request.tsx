/** The request as the model received it in each round of the last turn: the system prompt with its placeholders filled,
 * the messages, the tools. Everything is text. */
import type { ChatDetail, ChatOffer } from "toolyard-client";
import { setQuery } from "../../lib/router";
import { useResource } from "../../lib/resource";
import { Code, Json } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import type { Conversation } from "./conversation";
import { words } from "./words";

interface Body {
  model?: string;
  messages?: { role?: string; content?: unknown; tool_calls?: unknown }[];
  tools?: unknown;
  [key: string]: unknown;
}

export function SentRequest({ conversation }: { conversation: Conversation }) {
  const t = words();
  const { state, value, error, reload } = useResource<ChatDetail>(`/v1/chats/${encodeURIComponent(conversation.id)}`);
  const rounds = value?.rounds ?? [];
  return (
    <Dialog title={t.sentTitle} side onClose={() => setQuery({ open: null })}>
      {state === "loading" && <Loading />}
      {state === "fault" &&
        (error?.status === 404 ? (
          <Empty sign="request" title={t.sentTitle}>
            {t.sentMissing}
          </Empty>
        ) : (
          <Fault error={error} retry={reload} />
        ))}
      {value && (
        <p class="quiet">
          {t.sentHelp} {value.offer && describeOffer(value.offer)}
        </p>
      )}
      {value?.offer?.left_out.length ? (
        <Notice tone="warn">
          {t.noRoom} {value.offer.left_out.join(", ")}
        </Notice>
      ) : null}
      {rounds.map((round, at) => (
        <details key={at} class="fold chat-round" open={at === rounds.length - 1}>
          <summary>{t.round(at + 1, rounds.length)}</summary>
          {typeof round.sent === "string" ? (
            <>
              <Notice tone="warn">{t.longText}</Notice>
              <Code text={round.sent} tall />
            </>
          ) : (
            <Round body={round.sent as Body} />
          )}
        </details>
      ))}
    </Dialog>
  );
}

function describeOffer({ mode, tools, tokens }: ChatOffer): string {
  const t = words();
  return mode === "none" ? t.offeredNone : (mode === "native" ? t.offeredNative : t.offeredText)(tools.length, tokens);
}

function Round({ body }: { body: Body }) {
  const t = words();
  const { messages = [], tools, ...rest } = body;
  return (
    <div class="stack">
      <div class="stack" data-given>
        {messages.map((message, at) =>
          typeof message.content === "string" && !message.tool_calls ? (
            <Code key={at} label={message.role} text={message.content} />
          ) : (
            <Json
              key={at}
              label={message.role}
              value={message.tool_calls ? message : shortenContent(message.content)}
            />
          ),
        )}
      </div>
      {tools !== undefined && <Json label={t.sentTools} value={tools} />}
      <Json label={t.sentMore} value={rest} />
    </div>
  );
}

/** Without the letters of pictures. */
function shortenContent(content: unknown): unknown {
  return JSON.parse(
    JSON.stringify(content ?? null, (_, value: unknown) =>
      typeof value === "string" && value.startsWith("data:") && value.length > 200
        ? `${value.slice(0, 60)}… (${value.length})`
        : value,
    ),
  );
}

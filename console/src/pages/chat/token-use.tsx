/** Token use as a person sees it: of a reply, of the conversation beside Send, in a dialog, and as a warning. */
import { signal } from "@preact/signals";
import type { ChatUsage } from "toolyard-client";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { contextUse, fillsPrompt, NEARLY_FULL, percent, shortCount, type ContextUse } from "./context-use";
import type { Conversation } from "./conversation";
import { contextWindow } from "./models";
import { composeWords } from "./words-compose";

const ALMOST_ALL = 0.95;

export function ReplyTokens({ usage }: { usage: ChatUsage | null }) {
  const t = composeWords();
  if (!usage?.total_tokens) return null;
  return (
    <span title={t.replyParts(usage.prompt_tokens ?? 0, usage.completion_tokens ?? 0)}>
      {t.replyTokens(usage.total_tokens)}
    </span>
  );
}

/** Read again whenever a reply ends, not while it grows. */
function useContextUse(conversation: Conversation): { use: ContextUse | null; window: number | null } {
  void conversation.running.value;
  const messages = conversation.cells.value.map((cell) => cell.at.peek());
  const window = contextWindow(conversation.model.value);
  return { use: contextUse(messages, window), window };
}

export function UseButton({ conversation, onOpen }: { conversation: Conversation; onOpen: () => void }) {
  const t = composeWords();
  const { use, window } = useContextUse(conversation);
  if (!use || use.prompt === null) return null;
  const spent = use.prompt + (use.completion ?? 0);
  const text = window ? t.usedOf(shortCount(spent), shortCount(window)) : t.used(shortCount(spent));
  const tone = use.filled !== null && use.filled >= NEARLY_FULL ? " warn" : "";
  return (
    <button
      type="button"
      class={`button quiet chat-use${tone}`}
      aria-label={`${t.use}: ${text}`}
      title={text}
      onClick={onOpen}
    >
      {use.filled === null ? <Icon sign="usage" size={16} /> : <Ring share={use.filled} />}
      <span>{use.filled === null ? shortCount(spent) : percent(use.filled)}</span>
    </button>
  );
}

function Ring({ share }: { share: number }) {
  const around = 2 * Math.PI * 8;
  return (
    <svg class="chat-ring" width="18" height="18" viewBox="0 0 20 20" fill="none" stroke-width="3" aria-hidden="true">
      <circle cx="10" cy="10" r="8" />
      <circle cx="10" cy="10" r="8" stroke-dasharray={`${Math.min(1, share) * around} ${around}`} />
    </svg>
  );
}

/** The conversations in which a warning was hidden, until the page is loaded again. */
const hidden = signal<ReadonlySet<string>>(new Set());

export function UseWarning({ conversation, onOptions }: { conversation: Conversation; onOptions: () => void }) {
  const t = composeWords();
  const { use, window } = useContextUse(conversation);
  if (!use || conversation.running.value || hidden.value.has(conversation.id)) return null;
  const isFull = use.filled !== null && use.filled >= NEARLY_FULL;
  const hasManyTools = fillsPrompt(use, window);
  if (!isFull && !hasManyTools) return null;
  const share = use.toolShare ?? 0;
  const tools = (window ? t.toolsFillWindow : t.toolsFill)(
    shortCount(use.toolTokens),
    share < ALMOST_ALL ? percent(share) : t.most,
  );
  return (
    <div class="chat-use-warning" role="note">
      <Icon sign="warning" size={16} />
      <span class="grow">
        {isFull && t.nearlyFull(percent(use.filled!))} {hasManyTools && tools}
      </span>
      {hasManyTools && (
        <Button kind="quiet" onClick={onOptions}>
          {t.fewerTools}
        </Button>
      )}
      <IconButton
        label={t.hide}
        sign="close"
        onClick={() => (hidden.value = new Set([...hidden.value, conversation.id]))}
      />
    </div>
  );
}

export function UseDialog({
  conversation,
  onOptions,
  onClose,
}: {
  conversation: Conversation;
  onOptions: () => void;
  onClose: () => void;
}) {
  const t = composeWords();
  const { use, window } = useContextUse(conversation);
  const share = (part: number, of: number | null) => (of ? percent(part / of) : "");
  const isMost = !!use?.prompt && use.toolTokens / use.prompt >= ALMOST_ALL; // they are estimated to be no less
  const toolPart = isMost ? t.mostOfIt : share(use?.toolTokens ?? 0, use?.prompt ?? null);
  const rows: [string, string][] = use
    ? [
        [
          t.lastRequest,
          `${t.replyTokens(use.prompt ?? 0)}${use.filled === null ? "" : ` (${share(use.prompt ?? 0, window)})`}`,
        ],
        [t.toolShare, t.toolNumbers(use.tools, use.toolTokens, toolPart)],
        [t.lastReply, t.replyTokens(use.completion ?? 0)],
        [t.wholeChat, t.replyTokens(use.total)],
        [t.window, window ? t.replyTokens(window) : t.windowUnknown],
      ]
    : [];
  return (
    <Dialog
      title={t.use}
      onClose={onClose}
      footer={
        <>
          <Button kind="quiet" sign="tools" onClick={onOptions}>
            {t.fewerTools}
          </Button>
          <span class="grow" />
          <Button kind="primary" onClick={onClose}>
            {t.done}
          </Button>
        </>
      }
    >
      {use ? (
        <>
          {use.filled !== null && (
            <div class="chat-use-bar" role="img" aria-label={percent(use.filled)}>
              <i class="tools" style={{ width: share(use.toolTokens, window) }} />
              <i style={{ width: share((use.prompt ?? 0) - use.toolTokens + (use.completion ?? 0), window) }} />
            </div>
          )}
          <dl class="chat-use-rows">
            {rows.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd class="tabular">{value}</dd>
              </div>
            ))}
          </dl>
        </>
      ) : (
        <p>{t.noUse}</p>
      )}
      <p class="faint">{t.useHelp}</p>
    </Dialog>
  );
}

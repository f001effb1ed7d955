/** Chat: the conversations at the side (a drawer on a phone), the open one, and where one writes. */
import "./style.css";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { liveConnection } from "../../lib/events";
import { lazyPage, loadAhead } from "../../lib/lazy-page";
import { setQuery, queryParam, navigate, route } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Empty, ErrorText, Fault, Loading, Notice } from "../../ui/state";
import { newDraft, type AssistantDraft } from "./assistants";
import { AssistantName, AssistantsDialog } from "./assistants-view";
import { loadCallParts } from "./calls";
import { Compose } from "./compose";
import { ConversationMenu } from "./conversation-menu";
import { Ideas } from "./ideas";
import { ConversationList } from "./list";
import { Messages } from "./messages";
import { Options } from "./options";
import { UseDialog, UseWarning } from "./token-use";
import { loadDrawnText } from "./use-rendered";
import type { Conversation } from "./conversation";
import { loadConversation, newConversation, openConversation } from "./conversations";
import { words } from "./words";
import { threadWords } from "./words-thread";

const SentRequest = lazyPage<{ conversation: Conversation }>(() =>
  import("./sent-request").then((module) => ({ default: module.SentRequest })),
);
if (route.peek().name) loadDrawnText().catch(() => undefined); // while the conversation is on its way

export default function Chat() {
  const t = words();
  const id = route.value.name;
  const conversation = useMemo(() => (id ? openConversation(id) : newConversation()), [id]);
  const open = queryParam("open");
  useTitle(conversation.title.value);
  const close = () => setQuery({ open: null });
  const draft = useSignal<AssistantDraft | null>(null); // of the options that become an assistant
  useEffect(() => loadAhead([loadDrawnText, ...loadCallParts, SentRequest.load]), []);
  useEffect(() => {
    if (open === "list" && matchMedia("(min-width: 900px)").matches) close();
  }, [open]);
  return (
    <div class="chat-page">
      <aside class="chat-side" aria-label={t.conversations}>
        <ConversationList />
      </aside>
      <section class="chat-main">
        <header class="chat-head">
          <span class="chat-narrow">
            <IconButton label={t.conversations} sign="panel" onClick={() => setQuery({ open: "list" }, false)} />
          </span>
          <h1
            class="cut"
            dir="auto"
            title={conversation.title.value}
            data-given={conversation.title.value ? "" : undefined}
          >
            {conversation.title.value || t.newChat}
          </h1>
          <AssistantName conversation={conversation} />
          {!conversation.fresh && (
            <IconButton label={t.sent} sign="request" onClick={() => setQuery({ open: "sent" }, false)} />
          )}
          <IconButton label={t.options} sign="settings" onClick={() => setQuery({ open: "options" }, false)} />
          {id && conversation.state.value === "ready" && (
            <ConversationMenu
              row={{ id, title: conversation.title.value, pinned: conversation.pinned.value }}
              label={threadWords().menu}
            />
          )}
          <span class="chat-narrow">
            <IconButton label={t.newChat} sign="plus" onClick={() => navigate("/chat")} />
          </span>
        </header>
        <ConversationView
          key={conversation.id}
          conversation={conversation}
          onNewAssistant={() => {
            draft.value = newDraft();
            setQuery({ open: "assistants" }, false);
          }}
        />
      </section>
      {open === "list" && (
        <Dialog title={t.conversations} side onClose={close}>
          <ConversationList onPick={() => undefined} />
        </Dialog>
      )}
      {open === "sent" && !conversation.fresh && <SentRequest conversation={conversation} />}
      {(open === "options" || open === "tools") && (
        <Options
          conversation={conversation}
          atTools={open === "tools"}
          onClose={close}
          onSaveAs={(options) => {
            draft.value = options;
            setQuery({ open: "assistants" });
          }}
        />
      )}
      {open === "assistants" && (
        <AssistantsDialog
          draft={draft.value}
          onClose={() => {
            draft.value = null;
            close();
          }}
        />
      )}
      {open === "use" && (
        <UseDialog conversation={conversation} onOptions={() => setQuery({ open: "tools" })} onClose={close} />
      )}
    </div>
  );
}

function ConversationView({
  conversation,
  onNewAssistant,
}: {
  conversation: Conversation;
  onNewAssistant: () => void;
}) {
  const t = words();
  const state = conversation.state.value;
  const sent = () => {
    if (route.peek().name !== conversation.id) navigate(`/chat/${conversation.id}`, true);
  };
  // What could not be saved because the server was away is saved when it is back.
  const connection = liveConnection.value.state;
  useEffect(() => {
    if (connection === "live" && conversation.unsaved.peek()?.status === 0) void conversation.save();
  }, [connection, conversation]);
  if (state === "loading")
    return (
      <div class="chat-state">
        <Loading rows={4} />
      </div>
    );
  if (state === "missing")
    return (
      <div class="chat-state">
        <Empty
          sign="chat"
          title={t.missing}
          action={
            <Button kind="primary" onClick={() => navigate("/chat")}>
              {t.newChat}
            </Button>
          }
        >
          {t.missingText}
        </Empty>
      </div>
    );
  if (state === "fault")
    return (
      <div class="chat-state">
        <Fault error={conversation.error.value} retry={() => void loadConversation(conversation)} />
      </div>
    );
  const unsaved = conversation.unsaved.value;
  const openTools = () => setQuery({ open: "tools" }, false);
  return (
    <>
      {conversation.cells.value.length ? (
        <Messages conversation={conversation} />
      ) : (
        <div class="chat-view">
          <Ideas
            conversation={conversation}
            onSent={sent}
            onManage={() => setQuery({ open: "assistants" }, false)}
            onNew={onNewAssistant}
          />
        </div>
      )}
      <div class="chat-bottom">
        {unsaved && (
          <Notice tone="warn" action={<Button onClick={() => conversation.save()}>{t.trySave}</Button>}>
            <strong>{t.unsaved}</strong>
            {unsaved.status === 413 ? <p>{t.tooLarge}</p> : <ErrorText error={unsaved} />}
          </Notice>
        )}
        <UseWarning conversation={conversation} onOptions={openTools} />
        <Compose
          conversation={conversation}
          onSent={sent}
          onOptions={openTools}
          onUse={() => setQuery({ open: "use" }, false)}
        />
      </div>
    </>
  );
}

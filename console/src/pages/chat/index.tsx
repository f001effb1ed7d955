/** Chat: the conversations at the side (a drawer on a phone), the open one, and where one writes. */
import "./style.css";
import { useEffect, useMemo } from "preact/hooks";
import { link } from "../../lib/live";
import { ask, asked, go, place } from "../../lib/router";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { Compose } from "./compose";
import { Ideas } from "./ideas";
import { List } from "./list";
import { Messages } from "./messages";
import { Options } from "./options";
import { Sent } from "./sent";
import type { Talk } from "./talk";
import { load, newTalk, talkOf } from "./talks";
import { words } from "./words";

export default function Chat() {
  const t = words();
  const id = place.value.name;
  const talk = useMemo(() => (id ? talkOf(id) : newTalk()), [id]);
  const open = asked("open");
  const close = () => ask({ open: null });
  useEffect(() => {
    if (open === "list" && matchMedia("(min-width: 900px)").matches) close();
  }, [open]);
  return (
    <div class="chat-page">
      <aside class="chat-side" aria-label={t.conversations}>
        <List />
      </aside>
      <section class="chat-main">
        <header class="chat-head">
          <span class="chat-narrow">
            <IconButton label={t.conversations} sign="panel" onClick={() => ask({ open: "list" }, false)} />
          </span>
          <h1 class="cut" title={talk.title.value} data-given={talk.title.value ? "" : undefined}>
            {talk.title.value || t.newChat}
          </h1>
          {!talk.fresh && <IconButton label={t.sent} sign="eye" onClick={() => ask({ open: "sent" }, false)} />}
          <IconButton label={t.options} sign="settings" onClick={() => ask({ open: "options" }, false)} />
          <span class="chat-narrow">
            <IconButton label={t.newChat} sign="plus" onClick={() => go("/chat")} />
          </span>
        </header>
        <Conversation key={talk.id} talk={talk} />
      </section>
      {open === "list" && (
        <Dialog title={t.conversations} side onClose={close}>
          <List onPick={() => undefined} />
        </Dialog>
      )}
      {open === "sent" && !talk.fresh && <Sent talk={talk} />}
      {open === "options" && <Options talk={talk} onClose={close} />}
    </div>
  );
}

function Conversation({ talk }: { talk: Talk }) {
  const t = words();
  const state = talk.state.value;
  const sent = () => {
    if (place.peek().name !== talk.id) go(`/chat/${talk.id}`, true);
  };
  // What could not be saved because the server was away is saved when it is back.
  const connection = link.value.state;
  useEffect(() => {
    if (connection === "live" && talk.unsaved.peek()?.status === 0) void talk.keep();
  }, [connection, talk]);
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
            <Button kind="primary" onClick={() => go("/chat")}>
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
        <Fault error={talk.error.value} retry={() => void load(talk)} />
      </div>
    );
  const unsaved = talk.unsaved.value;
  return (
    <>
      {talk.cells.value.length ? (
        <Messages talk={talk} />
      ) : (
        <div class="chat-view">
          <Ideas talk={talk} onSent={sent} />
        </div>
      )}
      <div class="chat-bottom">
        {unsaved && (
          <Notice tone="warn" action={<Button onClick={() => talk.keep()}>{t.trySave}</Button>}>
            <strong>{t.unsaved}</strong>
            <p>{unsaved.status === 413 ? t.tooLarge : unsaved.message}</p>
          </Notice>
        )}
        <Compose talk={talk} onSent={sent} onOptions={() => ask({ open: "options" }, false)} />
      </div>
    </>
  );
}

/** The conversations of this key: found by words, opened, renamed, deleted. */
import { useSignal } from "@preact/signals";
import { api, withQuery } from "../../lib/api";
import { setQuery, queryParam, navigate, route } from "../../lib/router";
import { useRecords } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Search, TextField } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Fault, Loading } from "../../ui/state";
import { Ago } from "../../ui/time";
import type { Row } from "./model";
import { closeConversation, openConversation } from "./conversations";
import { words } from "./words";

export function ConversationList({ onPick }: { onPick?: () => void }) {
  const t = words();
  const records = useRecords<Row>(withQuery("/v1/conversations", { limit: 50, search: queryParam("q") }), [
    "conversation.",
  ]);
  const changing = useSignal<{ row: Row; how: "rename" | "remove" } | null>(null);
  const here = route.value.name;
  return (
    <div class="chat-list">
      <a class="button chat-new" href="/chat" onClick={onPick}>
        <Icon sign="plus" size={16} />
        <span>{t.newChat}</span>
      </a>
      <Search label={t.search} value={queryParam("q")} onInput={(q) => setQuery({ q })} />
      {records.state === "loading" && <Loading rows={6} />}
      {records.state === "fault" && <Fault error={records.error} retry={records.reload} />}
      {records.state === "ready" && !records.rows.length && (
        <p class="faint chat-none">{queryParam("q") ? t.noneFound : t.noneText}</p>
      )}
      <ul>
        {records.rows.map((row) => (
          <li key={row.id} class={row.id === here ? "on" : ""}>
            <a
              href={withQuery(`/chat/${row.id}`, { q: queryParam("q") })}
              data-row
              aria-current={row.id === here ? "page" : undefined}
              onClick={onPick}
            >
              <span class="cut" dir="auto" title={row.title} data-given={row.title ? "" : undefined}>
                {row.title || t.untitled}
              </span>
              <span class="faint">
                <Ago at={row.updated} />
              </span>
            </a>
            <span class="chat-row-acts">
              <IconButton label={t.rename} sign="edit" onClick={() => (changing.value = { row, how: "rename" })} />
              <IconButton label={t.remove} sign="trash" onClick={() => (changing.value = { row, how: "remove" })} />
            </span>
          </li>
        ))}
      </ul>
      {records.next && (
        <Button kind="quiet" disabled={records.busy} onClick={records.more}>
          {t.more}
        </Button>
      )}
      {changing.value?.how === "rename" && (
        <RenameDialog
          row={changing.value.row}
          onClose={() => {
            changing.value = null;
            records.reload();
          }}
        />
      )}
      {changing.value?.how === "remove" && (
        <RemoveDialog
          row={changing.value.row}
          onClose={() => (changing.value = null)}
          onGone={() => {
            records.drop(changing.value!.row.id);
            changing.value = null;
          }}
        />
      )}
    </div>
  );
}

function RenameDialog({ row, onClose }: { row: Row; onClose: () => void }) {
  const t = words();
  const title = useSignal(row.title);
  const save = async () => {
    const conversation = openConversation(row.id);
    while (conversation.state.peek() === "loading") await new Promise((wake) => setTimeout(wake, 50));
    conversation.title.value = title.value.trim().slice(0, 200);
    await conversation.save();
    onClose();
  };
  return (
    <Dialog
      title={t.renameTitle}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" onClick={save} disabled={!title.value.trim()}>
            {t.save}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField label={t.name} value={title.value} onInput={(value) => (title.value = value)} />
      </form>
    </Dialog>
  );
}

function RemoveDialog({ row, onClose, onGone }: { row: Row; onClose: () => void; onGone: () => void }) {
  const t = words();
  const remove = async () => {
    await api(`/v1/conversations/${row.id}`, { method: "DELETE" });
    closeConversation(row.id);
    localStorage.removeItem(`toolyard.draft.${row.id}`);
    showToast(t.removed);
    if (route.peek().name === row.id) navigate(withQuery("/chat", { q: queryParam("q") }));
    onGone();
  };
  return (
    <Dialog
      title={t.removeTitle}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="danger" sign="trash" onClick={remove}>
            {t.remove}
          </Button>
        </>
      }
    >
      <p>{t.removeText(row.title || t.untitled)}</p>
    </Dialog>
  );
}

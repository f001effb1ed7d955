/** What can be done with a conversation, in the list and above its messages. */
import { useSignal } from "@preact/signals";
import { api, withQuery } from "../../lib/api";
import { copyText } from "../../lib/copy";
import { navigate, queryParam, route } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { Button, toastError } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { MoreMenu } from "../../ui/menu";
import { downloadText } from "../../ui/rendered/source-text";
import { linkMessages, newestLeaf, pathTo } from "./branches";
import { changeConversation, closeConversation } from "./conversations";
import { conversationToMarkdown } from "./markdown";
import { fromStored, settingsOf, type Message, type StoredConversation } from "./model";
import { words } from "./words";
import { threadWords } from "./words-thread";

interface Named {
  id: string;
  title: string;
  pinned: boolean;
}

export function ConversationMenu({
  row,
  label,
  given,
  onChanged,
  onGone,
}: {
  row: Named;
  label: string;
  given?: boolean;
  onChanged?: () => void;
  onGone?: () => void;
}) {
  const t = words(),
    own = threadWords();
  const dialog = useSignal<"rename" | "remove" | null>(null);
  const close = () => (dialog.value = null);
  const items = [
    {
      name: row.pinned ? own.unpin : own.pin,
      sign: "pin" as const,
      run: async () => {
        await changeConversation(row.id, { pinned: !row.pinned });
        onChanged?.();
      },
    },
    { name: t.rename, sign: "edit" as const, run: () => (dialog.value = "rename") },
    {
      name: own.copyMarkdown,
      sign: "copy" as const,
      run: async () => {
        if (await copyText(await readMarkdown(row.id))) showToast(own.copied);
      },
    },
    {
      name: own.exportMarkdown,
      sign: "download" as const,
      run: async () => downloadText(`${fileName(row.title)}.md`, await readMarkdownFile(row.id), "text/markdown"),
    },
    {
      name: own.exportJson,
      sign: "download" as const,
      run: async () => downloadText(`${fileName(row.title)}.json`, await readJson(row.id), "application/json"),
    },
    { name: t.remove, sign: "trash" as const, danger: true, run: () => (dialog.value = "remove") },
  ];
  return (
    <>
      <MoreMenu label={label} items={items} given={given} />
      {dialog.value === "rename" && (
        <RenameDialog
          row={row}
          onClose={() => {
            close();
            onChanged?.();
          }}
        />
      )}
      {dialog.value === "remove" && (
        <RemoveDialog
          row={row}
          onClose={close}
          onGone={() => {
            close();
            onGone?.();
          }}
        />
      )}
    </>
  );
}

function readStored(id: string): Promise<StoredConversation> {
  return api<StoredConversation>(`/v1/conversations/${encodeURIComponent(id)}`);
}

async function readMarkdown(id: string): Promise<string> {
  const stored = await readStored(id);
  return conversationToMarkdown(stored.title, messagesInView(stored));
}

async function readMarkdownFile(id: string): Promise<string> {
  const stored = await readStored(id);
  const { writeMarkdownFile } = await import("./markdown-file");
  return writeMarkdownFile(stored.title, stored.model, messagesInView(stored));
}

function messagesInView(stored: StoredConversation): Message[] {
  const all = linkMessages(stored.messages).map(fromStored);
  return pathTo(all, newestLeaf(all, stored.leaf));
}

async function readJson(id: string): Promise<string> {
  const { title, model, settings, leaf, messages } = await readStored(id);
  const { writeConversation } = await import("./conversation-file");
  return writeConversation({
    title,
    model,
    settings: settingsOf(settings),
    leaf,
    messages: linkMessages(messages).map(fromStored),
  });
}

/** A name that every system can store. */
function fileName(title: string): string {
  return (
    title
      .replace(/[\p{Cc}\p{Cf}<>:"/\\|?*]/gu, " ")
      .replace(/\s+/g, " ")
      .trim()
      .replace(/^\.+|\.+$/g, "")
      .slice(0, 80)
      .trim() || "conversation"
  );
}

function RenameDialog({ row, onClose }: { row: Named; onClose: () => void }) {
  const t = words();
  const title = useSignal(row.title);
  const save = async () => {
    await changeConversation(row.id, { title: title.value.trim().slice(0, 200) });
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
          save().catch(toastError);
        }}
      >
        <TextField label={t.name} value={title.value} onInput={(value) => (title.value = value)} />
      </form>
    </Dialog>
  );
}

function RemoveDialog({ row, onClose, onGone }: { row: Named; onClose: () => void; onGone: () => void }) {
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

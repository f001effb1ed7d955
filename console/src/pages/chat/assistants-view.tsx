/** Assistants to start a chat with, and the dialogs in which they are created, edited, duplicated and deleted. */
import { useSignal } from "@preact/signals";
import type { AssistantRow } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select, TextField } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Empty, Fault, Loading } from "../../ui/state";
import { applyAssistant, deleteAssistant, newDraft, saveAssistant, toDraft, type AssistantDraft } from "./assistants";
import type { Conversation } from "./conversation";
import { chatModels } from "./models";
import { OptionFields } from "./option-fields";
import { composeWords } from "./words-compose";

const PATH = "/v1/assistants";
const TOPICS = ["assistant."];

/** The assistants of a chat that has not begun: one press gives it the options, another takes them back. */
export function AssistantPicker({
  conversation,
  onManage,
  onNew,
}: {
  conversation: Conversation;
  onManage: () => void;
  onNew: () => void;
}) {
  const t = composeWords();
  const { value } = useResource<{ data: AssistantRow[] }>(PATH, TOPICS);
  if (!value) return null;
  const chosen = conversation.settings.value.assistant;
  return (
    <section class="chat-assistants" aria-label={t.assistants}>
      {value.data.map((one) => (
        <button
          key={one.id}
          type="button"
          class="chat-assistant"
          aria-label={t.start(one.name)}
          aria-pressed={one.id === chosen}
          title={one.instructions.slice(0, 200) || one.name}
          data-given
          onClick={() => applyAssistant(conversation, one.id === chosen ? null : one)}
        >
          <Icon sign={one.id === chosen ? "chosen" : "assistant"} size={15} />
          <bdi class="cut">{one.name}</bdi>
        </button>
      ))}
      <button type="button" class="chat-assistant quiet" onClick={value.data.length ? onManage : onNew}>
        <Icon sign={value.data.length ? "edit" : "plus"} size={15} />
        {value.data.length ? t.manage : t.newAssistant}
      </button>
    </section>
  );
}

/** The name of the assistant that a chat was started with, as long as there is one. */
export function AssistantName({ conversation }: { conversation: Conversation }) {
  const { assistant } = conversation.settings.value;
  const { value } = useResource<{ data: AssistantRow[] }>(assistant ? PATH : null, TOPICS);
  const name = assistant && value?.data.find((one) => one.id === assistant)?.name;
  if (!name) return null;
  const label = composeWords().startedWith(name);
  return (
    <span class="chat-with" role="img" aria-label={label} title={label} data-given>
      <Icon sign="assistant" size={14} />
      <bdi class="cut">{name}</bdi>
    </span>
  );
}

/** The list of assistants, or the one that is edited; `draft` opens the dialog with a new one. */
export function AssistantsDialog({ draft, onClose }: { draft: AssistantDraft | null; onClose: () => void }) {
  const t = composeWords();
  const assistants = useResource<{ data: AssistantRow[] }>(PATH, TOPICS);
  const editing = useSignal<AssistantDraft | null>(draft);
  const removing = useSignal<AssistantRow | null>(null);
  const leave = () => {
    if (draft) return onClose();
    editing.value = removing.value = null;
    assistants.reload();
  };
  if (editing.value) return <Editor draft={editing.value} onClose={leave} />;
  if (removing.value) return <Removal assistant={removing.value} onClose={leave} />;
  const rows = assistants.value?.data ?? [];
  return (
    <Dialog
      title={t.assistants}
      onClose={onClose}
      footer={
        <>
          <Button sign="plus" onClick={() => (editing.value = newDraft())}>
            {t.newAssistant}
          </Button>
          <span class="grow" />
          <Button kind="primary" onClick={onClose}>
            {t.done}
          </Button>
        </>
      }
    >
      <p class="quiet">{t.assistantsText}</p>
      {assistants.state === "loading" && <Loading rows={3} />}
      {assistants.state === "fault" && <Fault error={assistants.error} retry={assistants.reload} />}
      {assistants.state === "ready" && !rows.length && <Empty sign="assistant" title={t.noAssistants} />}
      <ul class="chat-assistant-rows">
        {rows.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              class="chat-file-open"
              aria-label={t.edit(one.name)}
              data-given
              onClick={() => (editing.value = toDraft(one))}
            >
              <span class="chat-file-name">
                <bdi class="cut">{one.name}</bdi>
                <bdi class="faint cut">{one.instructions.split("\n")[0] || one.model}</bdi>
              </span>
            </button>
            <IconButton
              label={t.duplicate(one.name)}
              sign="duplicate"
              onClick={() => (editing.value = { ...toDraft(one), id: "", name: t.copyOf(one.name).slice(0, 100) })}
            />
            <IconButton label={t.remove(one.name)} sign="trash" onClick={() => (removing.value = one)} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Editor({ draft, onClose }: { draft: AssistantDraft; onClose: () => void }) {
  const t = composeWords();
  const now = useSignal(draft);
  const tried = useSignal(false);
  const set = (change: Partial<AssistantDraft>) => (now.value = { ...now.peek(), ...change });
  const isNamed = now.value.name.trim() !== "";
  const save = async () => {
    tried.value = true;
    if (!isNamed) return;
    const { name } = await saveAssistant(now.peek());
    showToast(t.savedAs(name));
    onClose();
  };
  const ids = chatModels();
  const known = now.value.model && !ids.includes(now.value.model) ? [now.value.model, ...ids] : ids;
  return (
    <Dialog
      title={draft.id ? t.editAssistant : t.newAssistant}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" onClick={save}>
            {t.save}
          </Button>
        </>
      }
    >
      <TextField
        label={t.name}
        required
        problem={tried.value && !isNamed && t.nameMissing}
        autocomplete="off"
        value={now.value.name}
        onInput={(name) => set({ name: name.slice(0, 100) })}
      />
      <Select
        label={t.model}
        value={now.value.model}
        options={[{ value: "", name: t.lastModel }, ...known.map((id) => ({ value: id, name: id, given: true }))]}
        onInput={(model) => set({ model })}
      />
      <OptionFields
        settings={now.value.settings}
        onChange={(change) => set({ settings: { ...now.peek().settings, ...change } })}
      />
    </Dialog>
  );
}

function Removal({ assistant, onClose }: { assistant: AssistantRow; onClose: () => void }) {
  const t = composeWords();
  const remove = async () => {
    await deleteAssistant(assistant.id);
    onClose();
  };
  return (
    <Dialog
      title={t.removeTitle}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="danger" sign="trash" onClick={remove}>
            {t.delete}
          </Button>
        </>
      }
    >
      <p>{t.removeText(assistant.name)}</p>
    </Dialog>
  );
}

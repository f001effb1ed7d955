/** The input area: grows with the text, keeps its draft, takes files and pictures by button, paste and drop, sends with
 * Enter and stops with the same button. Enter makes a new line on a touch keyboard, which has no Shift+Enter; Enter that
 * ends the choice of an input method never sends. */
import "./compose.css";
import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { formatNumber } from "../../lib/language";
import { setQuery, queryParam } from "../../lib/router";
import { closeToast, UserError, type Toast } from "../../lib/toast";
import { useEvent } from "../../lib/use-event";
import { IconButton, toastError } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { AttachMenu } from "./attach-menu";
import { AttachmentChips } from "./attachment-chips";
import {
  MOST_FILES,
  MOST_IMAGES,
  MOST_TEXT,
  readProjectFile,
  readUpload,
  type Attachment,
  type ReadFile,
} from "./attachments";
import { modeOf } from "./model";
import { ModelNotice, ModelPicker } from "./model-picker";
import type { Conversation } from "./conversation";
import { ProjectFiles } from "./project-files";
import { UseButton } from "./token-use";
import { send, stop } from "./turn";
import { words } from "./words";
import { composeWords } from "./words-compose";

const withKeys = matchMedia("(pointer: fine)").matches && innerWidth >= 900;
const touchKeyboard = matchMedia("(hover: none) and (pointer: coarse)");
/** Files that were attached and not sent yet; like the text, they stay when one looks at another page. */
interface AttachedDraft {
  files: Signal<readonly Attachment[]>;
  images: Signal<readonly string[]>;
}
const attachedDrafts = new Map<string, AttachedDraft>();
const draftKey = (conversation: Conversation) => `toolyard.draft.${conversation.fresh ? "new" : conversation.id}`;

export function Compose({
  conversation,
  onSent,
  onOptions,
  onUse,
}: {
  conversation: Conversation;
  onSent: () => void;
  onOptions: () => void;
  onUse: () => void;
}) {
  const t = words();
  const box = useRef<HTMLTextAreaElement>(null);
  const text = useSignal("");
  const { files, images } = useMemo(() => attachedDraft(draftKey(conversation)), [conversation]);
  const reading = useSignal(0); // files that are on their way
  const refusals = useRef<Toast[]>([]); // of files, until the message is sent
  const dragging = useSignal(false);
  const picking = useSignal(false);
  const running = conversation.running.value;
  const eager = useSignal(false); // Enter came before the models or the files did
  const isEmpty = !text.value.trim() && !images.value.length && !files.value.length;
  // Before anybody can write: what is typed early must not be overwritten by the draft.
  useLayoutEffect(() => {
    const given = queryParam("prompt");
    text.value = given || (localStorage.getItem(draftKey(conversation)) ?? "");
    if (given) setQuery({ prompt: null });
    if (withKeys) box.current?.focus();
  }, [conversation, text]);
  useLayoutEffect(() => {
    const node = box.current!;
    node.style.height = "0";
    node.style.height = `${Math.min(220, node.scrollHeight + 2)}px`;
  }, [text.value]);
  const write = (value: string) => {
    text.value = value;
    if (value) localStorage.setItem(draftKey(conversation), value);
    else localStorage.removeItem(draftKey(conversation));
  };
  const submit = () => {
    const message = text.value.trim();
    eager.value = !conversation.model.peek() || reading.peek() > 0;
    if (running || isEmpty || eager.value) return;
    const pictures = [...images.value];
    const attachments = [...files.value];
    write("");
    images.value = [];
    files.value = [];
    refusals.current.splice(0).forEach(closeToast);
    attachedDrafts.delete(draftKey(conversation));
    void send(conversation, message, pictures, attachments);
    attachedDrafts.set(draftKey(conversation), { files, images }); // a new chat has its own key now
    onSent();
  };
  const isReady = conversation.model.value !== "" && !reading.value;
  const submitEagerly = useEvent(() => {
    if (eager.peek()) submit();
  });
  useEffect(() => {
    if (isReady) submitEagerly();
  }, [isReady, submitEagerly]);
  const add = (read: ReadFile) => {
    const c = composeWords();
    if ("image" in read) {
      if (images.value.length >= MOST_IMAGES) throw new UserError(c.manyPictures(MOST_IMAGES));
      images.value = [...images.value, read.image];
      return;
    }
    const { attachment } = read;
    const characters = files.value.reduce((sum, one) => sum + one.text.length, attachment.text.length);
    if (files.value.length >= MOST_FILES) throw new UserError(c.manyFiles(MOST_FILES));
    if (characters > MOST_TEXT) throw new UserError(c.muchText(formatNumber(MOST_TEXT)));
    files.value = [...files.value, attachment];
  };
  const attach = async (reads: (() => Promise<ReadFile>)[]) => {
    reading.value += reads.length;
    for (const read of reads) {
      try {
        add(await read());
      } catch (error) {
        eager.value = false; // what was meant to go along is missing
        refusals.current.push(toastError(error));
      } finally {
        reading.value--;
      }
    }
  };
  const upload = (given: Iterable<File>) => attach([...given].map((file) => () => readUpload(file)));
  // Anywhere on the page: a file that misses the box would else be opened instead of the console.
  const drop = useEvent((event: DragEvent) => {
    if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    dragging.value = event.type === "dragover";
    if (event.type === "drop") void upload(event.dataTransfer.files);
  });
  useEffect(() => {
    const leave = (event: DragEvent) => {
      if (!event.relatedTarget) dragging.value = false;
    };
    document.addEventListener("dragover", drop);
    document.addEventListener("drop", drop);
    document.addEventListener("dragleave", leave);
    return () => {
      document.removeEventListener("dragover", drop);
      document.removeEventListener("drop", drop);
      document.removeEventListener("dragleave", leave);
    };
  }, [dragging, drop]);
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (touchKeyboard.matches && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    submit();
  };
  return (
    <>
      <ModelNotice conversation={conversation} />
      <form
        class={`chat-compose${dragging.value ? " dragging" : ""}`}
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {dragging.value && <div class="chat-drop">{composeWords().dropHere}</div>}
        <Attached files={files} images={images} reading={reading.value > 0} />
        <textarea
          dir="auto"
          ref={box}
          rows={1}
          aria-label={t.message}
          placeholder={withKeys ? t.placeholderKeys : t.placeholder}
          enterkeyhint={touchKeyboard.matches ? "enter" : "send"}
          value={text.value}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={key}
          onPaste={(event) => {
            const pasted = [...(event.clipboardData?.files ?? [])];
            if (pasted.length) {
              event.preventDefault();
              void upload(pasted);
            }
          }}
        />
        <div class="chat-tools">
          <AttachMenu onFiles={(given) => void upload(given)} onProject={() => (picking.value = true)} />
          <ModelPicker conversation={conversation} />
          <button type="button" class="button quiet chat-options" title={toolsWord(conversation)} onClick={onOptions}>
            <Icon sign="tools" size={16} />
            <span>{toolsWord(conversation)}</span>
          </button>
          <span class="grow" />
          <UseButton conversation={conversation} onOpen={onUse} />
          {running ? (
            <button
              type="button"
              class="button chat-send stop"
              aria-label={t.stop}
              title={t.stop}
              disabled={conversation.stopping.value}
              onClick={() => void stop(conversation).catch(toastError)}
            >
              <Icon sign="stop" size={16} />
              <span>{conversation.stopping.value ? t.stopping : t.stop}</span>
            </button>
          ) : (
            <button
              type="submit"
              class="button primary chat-send"
              aria-label={t.send}
              disabled={isEmpty || !conversation.model.value || reading.value > 0}
            >
              <Icon sign="send" size={16} />
              <span>{t.send}</span>
            </button>
          )}
        </div>
      </form>
      {picking.value && (
        <ProjectFiles
          chosen={files.value.map((file) => file.name)}
          onChoose={(path) => void attach([() => readProjectFile(path)])}
          onClose={() => (picking.value = false)}
        />
      )}
    </>
  );
}

function attachedDraft(key: string): AttachedDraft {
  const draft = attachedDrafts.get(key) ?? { files: signal([]), images: signal([]) };
  attachedDrafts.set(key, draft);
  return draft;
}

function Attached({ files, images, reading }: AttachedDraft & { reading: boolean }) {
  const t = composeWords();
  if (!files.value.length && !images.value.length && !reading) return null;
  return (
    <div class="chat-attached">
      {images.value.length > 0 && (
        <div class="chat-images">
          {images.value.map((source, at) => (
            <span key={`${at} ${source.length}`} class="chat-thumb">
              <img src={source} alt={t.picture} />
              <IconButton
                label={t.removePicture}
                sign="close"
                onClick={() => (images.value = images.value.filter((_, n) => n !== at))}
              />
            </span>
          ))}
        </div>
      )}
      <AttachmentChips
        attachments={files.value}
        onRemove={(at) => (files.value = files.value.filter((_, n) => n !== at))}
      />
      {reading && (
        <span class="faint" role="status">
          {t.reading}
        </span>
      )}
    </div>
  );
}

function toolsWord(conversation: Conversation): string {
  const t = words(),
    { tools } = conversation.settings.value,
    mode = modeOf(conversation.settings.value);
  const which = tools === "all" ? t.toolsAll : tools === "none" ? t.toolsNone : t.toolsCount(tools.length);
  return tools === "none" || mode === "ask"
    ? which
    : t.modeTools(mode === "read-only" ? t.readOnly : t.modeSafe, which);
}

/** The input area: grows with the text, keeps its draft, takes pictures, sends with Enter and stops with the same
 * button. Enter that ends the choice of an input method never sends. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api, hasScope } from "../../lib/api";
import { navigate, setQuery, queryParam } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { useEvent } from "../../lib/use-event";
import { IconButton, toastError } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { ImageError, readImage } from "./images";
import { modeOf } from "./model";
import type { Conversation } from "./conversation";
import { send, stop } from "./turn";
import { words } from "./words";

const MOST = 4;
const MODEL = "toolyard.model";
const PROVIDERS = "/providers";
const withKeys = matchMedia("(pointer: fine)").matches && innerWidth >= 900;
const draftKey = (conversation: Conversation) => `toolyard.draft.${conversation.fresh ? "new" : conversation.id}`;

export function Compose({
  conversation,
  onSent,
  onOptions,
}: {
  conversation: Conversation;
  onSent: () => void;
  onOptions: () => void;
}) {
  const t = words();
  const box = useRef<HTMLTextAreaElement>(null);
  const text = useSignal("");
  const images = useSignal<readonly string[]>([]);
  const running = conversation.running.value;
  const eager = useSignal(false); // Enter came before the models did
  // Before anybody can write: what is typed early must not be overwritten by the draft.
  useLayoutEffect(() => {
    const given = queryParam("prompt");
    text.value = given || (localStorage.getItem(draftKey(conversation)) ?? "");
    images.value = [];
    if (given) setQuery({ prompt: null });
    if (withKeys) box.current?.focus();
  }, [images, conversation, text]);
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
    eager.value = !conversation.model.peek();
    if (running || (!message && !images.value.length) || eager.value) return;
    const pictures = [...images.value];
    write("");
    images.value = [];
    void send(conversation, message, pictures);
    onSent();
  };
  const model = conversation.model.value;
  const submitEagerly = useEvent(() => {
    if (eager.peek()) submit();
  });
  useEffect(() => {
    if (model) submitEagerly();
  }, [model, submitEagerly]);
  const attach = async (files: Iterable<File>) => {
    for (const file of files) {
      if (images.value.length >= MOST) return showToast(t.manyPictures, "bad");
      try {
        images.value = [...images.value, await readImage(file)];
      } catch (error) {
        showToast(error instanceof ImageError && error.why === "large" ? t.largePicture : t.badPicture, "bad");
      }
    }
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      class="chat-compose"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void attach(event.dataTransfer?.files ?? []);
      }}
    >
      {images.value.length > 0 && (
        <div class="chat-images">
          {images.value.map((source, at) => (
            <span key={source} class="chat-thumb">
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
      <textarea
        ref={box}
        rows={1}
        aria-label={t.message}
        placeholder={withKeys ? t.placeholderKeys : t.placeholder}
        value={text.value}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={key}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length) {
            event.preventDefault();
            void attach(files);
          }
        }}
      />
      <div class="chat-tools">
        <label class="button icon-only quiet chat-attach" title={t.attach}>
          <Icon sign="attach" />
          <input
            type="file"
            class="hush"
            accept="image/png,image/jpeg,image/gif,image/webp"
            multiple
            aria-label={t.attach}
            onChange={(event) => {
              void attach([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = "";
            }}
          />
        </label>
        <ModelPicker conversation={conversation} />
        <button type="button" class="button quiet chat-options" title={toolsWord(conversation)} onClick={onOptions}>
          <Icon sign="tools" size={16} />
          <span>{toolsWord(conversation)}</span>
        </button>
        <span class="grow" />
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
            disabled={(!text.value.trim() && !images.value.length) || !conversation.model.value}
          >
            <Icon sign="send" size={16} />
            <span>{t.send}</span>
          </button>
        )}
      </div>
    </form>
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

function ModelPicker({ conversation }: { conversation: Conversation }) {
  const t = words();
  const models = useSignal<readonly string[]>([]);
  const failed = useSignal(false);
  useEffect(() => {
    api<{ data: { id: string }[] }>("/v1/models").then(
      ({ data }) => {
        models.value = data.map((one) => one.id);
        if (conversation.model.peek()) return;
        const last = localStorage.getItem(MODEL) ?? "";
        conversation.model.value = models.value.includes(last)
          ? last
          : (models.value.find((name) => name !== "tour") ?? models.value[0] ?? "");
      },
      () => (failed.value = true),
    );
  }, [failed, models, conversation]);
  const all =
    conversation.model.value && !models.value.includes(conversation.model.value)
      ? [conversation.model.value, ...models.value]
      : models.value;
  if (failed.value && !all.length) return <span class="faint">{t.noModels}</span>;
  return (
    <select
      class="chat-model"
      aria-label={t.model}
      title={t.model}
      value={conversation.model.value}
      onChange={(event) => {
        if (event.currentTarget.value === PROVIDERS) return navigate(PROVIDERS);
        conversation.model.value = event.currentTarget.value;
        localStorage.setItem(MODEL, conversation.model.value);
        void conversation.save();
      }}
    >
      {all.map((name) => (
        <option key={name} value={name} data-given>
          {name}
        </option>
      ))}
      {hasScope("admin") && <option value={PROVIDERS}>{t.manageModels}</option>}
    </select>
  );
}

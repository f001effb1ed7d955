/** The pictures of a sent message; a press shows one in full size. */
import { useSignal } from "@preact/signals";
import { Dialog } from "../../ui/dialog";
import { words } from "./words";

export function Pictures({ sources }: { sources: readonly string[] }) {
  const t = words();
  const open = useSignal<string | null>(null);
  if (!sources.length) return null;
  return (
    <div class="chat-images">
      {sources.map((source, at) => (
        <button
          key={at}
          type="button"
          class="chat-picture"
          aria-label={t.enlarge}
          title={t.enlarge}
          onClick={() => (open.value = source)}
        >
          <img src={source} alt={t.picture} />
        </button>
      ))}
      {open.value && (
        <Dialog title={t.picture} side onClose={() => (open.value = null)}>
          <img class="chat-picture-large" src={open.value} alt={t.picture} />
        </Dialog>
      )}
    </div>
  );
}

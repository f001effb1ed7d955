/** The button that attaches: files of this device, and, for a key that may use tools, files of the project. */
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { hasScope } from "../../lib/api";
import { Icon } from "../../ui/icon";
import { composeWords } from "./words-compose";

export function AttachMenu({ onFiles, onProject }: { onFiles: (files: File[]) => void; onProject: () => void }) {
  const t = composeWords();
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const withProject = hasScope("tools");
  const upload = () => {
    open.value = false;
    input.current?.click();
  };
  useEffect(() => {
    if (open.value) box.current?.querySelector<HTMLButtonElement>("[role=menuitem]")?.focus();
  }, [open.value]);
  return (
    <div
      ref={box}
      class="chat-attach"
      onKeyDown={(event) => {
        if (!open.value) return;
        if (event.key === "Escape") {
          event.stopPropagation();
          open.value = false;
          button.current?.focus();
        } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          event.preventDefault();
          const items = [...box.current!.querySelectorAll<HTMLButtonElement>("[role=menuitem]")];
          const at = items.indexOf(document.activeElement as HTMLButtonElement);
          items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
        }
      }}
      onFocusOut={(event) => {
        if (!box.current?.contains(event.relatedTarget as Node | null)) open.value = false;
      }}
    >
      <button
        ref={button}
        type="button"
        class="button icon-only quiet"
        aria-label={t.attach}
        title={t.attach}
        aria-haspopup={withProject ? "menu" : undefined}
        aria-expanded={withProject ? open.value : undefined}
        onClick={() => (withProject ? (open.value = !open.value) : upload())}
      >
        <Icon sign="attach" />
      </button>
      {open.value && (
        <div class="chat-attach-menu" role="menu" aria-label={t.attach}>
          <button type="button" role="menuitem" onClick={upload}>
            <Icon sign="file" size={16} />
            {t.attachFiles}
          </button>
          <button
            type="button"
            role="menuitem"
            onClick={() => {
              open.value = false;
              onProject();
            }}
          >
            <Icon sign="folder" size={16} />
            {t.attachProject}
          </button>
        </div>
      )}
      <input
        ref={input}
        type="file"
        class="hush"
        multiple
        tabIndex={-1}
        aria-label={t.attachFiles}
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

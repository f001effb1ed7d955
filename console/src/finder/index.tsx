/** Ctrl+K: everything can be found here. The field is there at once; what finds follows when it is first opened. */
import "./style.css";
import { signal, useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { finder } from "../lib/shortcuts";
import { toastError } from "../ui/button";
import { Icon } from "../ui/icon";
import type { ResultsProps } from "./results";
import { finderWords } from "./words";

const results = signal<ComponentType<ResultsProps> | null>(null);

export function Finder() {
  const t = finderWords();
  const box = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const active = useSignal("");
  const keys = useRef<(event: KeyboardEvent) => void>(() => undefined);
  // Before the next key: whoever types on at once loses no letter.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus();
  }, []);
  useEffect(() => {
    if (!results.peek()) import("./results").then((module) => (results.value = module.Results), toastError);
  }, []);
  const close = () => (finder.value = false);
  const Results = results.value;
  return (
    <dialog
      ref={box}
      class="finder-box"
      aria-label={t.find}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === box.current && close()}
    >
      <div class="sheet">
        <div class="finder-field">
          <Icon sign="search" size={18} />
          <input
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="finder-results"
            aria-activedescendant={active.value || undefined}
            aria-autocomplete="list"
            aria-label={t.find}
            placeholder={t.example}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            enterkeyhint="go"
            autofocus
            value={text.value}
            onKeyDown={(event) => !event.isComposing && keys.current(event)}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          <button type="button" class="button quiet finder-cancel" onClick={close}>
            {t.cancel}
          </button>
        </div>
        {Results && <Results text={text.value} active={active} keys={keys} onClose={close} />}
      </div>
    </dialog>
  );
}

/** Ctrl+K: any page, any tool, a few commands, by a few letters of their names. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api } from "./lib/api";
import { setLanguage } from "./lib/language";
import { navigate } from "./lib/router";
import { palette } from "./lib/shortcuts";
import { setTheme } from "./lib/theme";
import { shellWords as words } from "./shell.words";
import { NAMES } from "./shell";

interface Found {
  name: string;
  kind: string;
  also?: string;
  run: () => void;
}

export function Palette() {
  const t = words();
  const box = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const at = useSignal(0);
  const tools = useSignal<readonly string[]>([]);
  // Before the next key: whoever types on at once loses no letter.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus();
  }, []);
  useEffect(() => {
    api<{ data: { name: string }[] }>("/v1/tools").then(
      (all) => (tools.value = all.data.map((one) => one.name)),
      () => undefined,
    );
  }, [tools]);
  const all: Found[] = [
    ...[...NAMES, "audit" as const, "providers" as const].map((name) => ({
      name: t[name],
      kind: t.kindPage,
      also: name,
      run: () => navigate(`/${name}`),
    })),
    { name: t.newChat, kind: t.kindDo, run: () => navigate("/chat") },
    { name: t.light, kind: t.kindDo, run: () => setTheme("light") },
    { name: t.dark, kind: t.kindDo, run: () => setTheme("dark") },
    { name: "English", kind: t.kindDo, run: () => setLanguage("en") },
    { name: "中文", kind: t.kindDo, run: () => setLanguage("zh") },
    ...tools.value.map((name) => ({
      name,
      kind: t.kindTool,
      run: () => navigate(`/tools/${encodeURIComponent(name)}`),
    })),
  ];
  const matching = all
    .filter((one) => matches(one.name, text.value) || matches(one.also ?? "", text.value))
    .slice(0, 12);
  const close = () => (palette.value = false);
  const choose = (one: Found | undefined) => {
    if (one) {
      close();
      one.run();
    }
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") at.value = Math.min(matching.length - 1, at.value + 1);
    else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
    else if (event.key === "Enter") choose(matching[at.value]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={box}
      class="centre palette"
      aria-label={t.palette}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === box.current && close()}
    >
      <div class="sheet">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-results"
          aria-activedescendant={matching.length ? `palette-result-${at.value}` : undefined}
          aria-label={t.palette}
          placeholder={t.palette}
          autofocus
          value={text.value}
          onKeyDown={keys}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            at.value = 0;
          }}
        />
        <ul id="palette-results" role="listbox" aria-label={t.palette}>
          {matching.map((one, n) => (
            <li
              key={one.kind + one.name}
              id={`palette-result-${n}`}
              role="option"
              aria-selected={n === at.value}
              onMouseMove={() => (at.value = n)}
              onClick={() => choose(one)}
            >
              <span class="cut">{one.name}</span>
              <span class="faint">{one.kind}</span>
            </li>
          ))}
        </ul>
        {!matching.length && <p class="quiet none">{t.paletteNone}</p>}
      </div>
    </dialog>
  );
}

/** The letters of `wanted` in this order somewhere in `name`. */
function matches(name: string, search: string): boolean {
  let from = 0;
  const lower = name.toLowerCase();
  for (const sign of search.toLowerCase().replaceAll(" ", "")) {
    from = lower.indexOf(sign, from) + 1;
    if (!from) return false;
  }
  return true;
}

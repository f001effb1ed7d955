/** The search of Activity: words, and filters such as `code:NOT_FOUND`. It suggests keys and their values while one
 * types; what means nothing is told below it. What was typed is written to the address when typing pauses. */
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { setQuery } from "../../lib/router";
import { Icon } from "../../ui/icon";
import { formatQuery, parseQuery, sameQuery, type Hint } from "./query";
import { suggest, type Suggestion, type Values } from "./suggestions";
import { currentQuery } from "./use-calls";
import { activityWords as words } from "./words";

const PAUSE_MS = 250;

export function SearchBox({ values }: { values: Values }) {
  const t = words();
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const typed = useSignal(formatQuery(currentQuery()));
  const caret = useSignal(0);
  const open = useSignal(false);
  const at = useSignal(-1);
  const timer = useRef(0);
  const there = currentQuery();
  const parsed = parseQuery(typed.value);
  // Another filter, a link or the way back has changed the address: the text follows, unless it says the same.
  const address = formatQuery(there);
  useEffect(() => {
    if (!timer.current && !sameQuery(parseQuery(typed.peek()).query, currentQuery())) typed.value = address;
  }, [address, typed]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const write = (text: string) => {
    clearTimeout(timer.current);
    timer.current = 0;
    setQuery({ ...parseQuery(text).query });
  };
  const type = (text: string, place: number) => {
    typed.value = text;
    caret.value = place;
    at.value = -1;
    open.value = true;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => write(text), PAUSE_MS);
  };
  const accept = (one: Suggestion) => {
    const text = typed.value.slice(0, one.start) + one.insert + typed.value.slice(one.end);
    const place = one.start + one.insert.length;
    // At once, not with the next frame: whoever types on before it would find the caret in the wrong place.
    field.current!.value = text;
    field.current!.focus();
    field.current!.setSelectionRange(place, place);
    type(text, place);
    if (one.ends) {
      open.value = false;
      write(text);
    }
  };
  const suggestions = open.value ? suggest(typed.value, caret.value, values) : [];
  const keys = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const count = suggestions.length;
    if (event.key === "ArrowDown" && count) at.value = (at.value + 1) % count;
    else if (event.key === "ArrowUp" && count) at.value = at.value <= 0 ? count - 1 : at.value - 1;
    else if ((event.key === "Enter" || event.key === "Tab") && at.value >= 0 && suggestions[at.value])
      accept(suggestions[at.value]!);
    else if (event.key === "Enter") {
      open.value = false;
      return write(typed.value);
    } else if (event.key === "Escape" && count) open.value = false;
    else return;
    event.preventDefault();
  };
  return (
    <div class="act-search">
      <div class="search">
        <Icon sign="search" size={16} />
        <input
          ref={field}
          type="text"
          data-search
          role="combobox"
          aria-label={t.search}
          aria-expanded={suggestions.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={at.value >= 0 && suggestions.length ? `${id}-${at.value}` : undefined}
          aria-describedby={parsed.hints.length ? `${id}-hints` : undefined}
          placeholder={t.searchExample}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          enterkeyhint="search"
          value={typed.value}
          onInput={(event) => type(event.currentTarget.value, event.currentTarget.selectionStart ?? 0)}
          onFocus={(event) => {
            caret.value = event.currentTarget.selectionStart ?? 0;
            open.value = true;
          }}
          onClick={(event) => {
            caret.value = event.currentTarget.selectionStart ?? 0;
            open.value = true;
          }}
          onBlur={() => (open.value = false)}
          onKeyDown={keys}
        />
      </div>
      <ul
        id={`${id}-list`}
        role="listbox"
        class="act-suggestions"
        aria-label={t.suggestions}
        hidden={!suggestions.length}
      >
        {suggestions.map((one, n) => (
          <li
            key={one.insert}
            id={`${id}-${n}`}
            role="option"
            aria-selected={n === at.value}
            // The field keeps the focus, and with it the keyboard of a phone.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => accept(one)}
          >
            <code data-given>{one.insert.trimEnd()}</code>
            <span class="faint cut" title={one.meaning}>
              {one.meaning}
            </span>
          </li>
        ))}
      </ul>
      {parsed.hints.length > 0 && !suggestions.length && (
        <p id={`${id}-hints`} class="act-hint" role="status">
          {parsed.hints.map((hint) => (
            <span key={hint.key + hint.value}>{hintText(hint)}</span>
          ))}
        </p>
      )}
    </div>
  );
}

function hintText({ key, value }: Hint): string {
  const t = words();
  if (key === "code") return t.noCode(value);
  if (key === "state") return t.noState(value);
  if (key === "since" || key === "before") return t.noTime(value);
  return t.noKey(key);
}

/** The results below the field, in groups; the arrow keys move along all of them. */
import { useSignal, type Signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { toAddress } from "../lib/base";
import { language } from "../lib/language";
import { navigate } from "../lib/router";
import { revealHidden } from "../lib/hidden-characters";
import { Icon } from "../ui/icon";
import type { Entry, Kind } from "./entry";
import { groupEntries, rankEntries, searchEntry, type Group } from "./find";
import { useLookup, useSettings, useTools } from "./lookups";
import { findPlaces } from "./places";
import { listRecent, rememberRecent } from "./recent";
import { finderWords } from "./words";

const PAGE = 8;
/** Without a text: so many actions and pages, below what was used last. */
const FIRST = 9;
const ORDER: readonly Kind[] = ["recent", "chat", "action", "page"];

export interface ResultsProps {
  text: string;
  /** The id of the chosen option, for the field. */
  active: Signal<string>;
  /** The field hands its keys over. */
  keys: RefObject<(event: KeyboardEvent) => void>;
  onClose: () => void;
}

export function Results({ text, active, keys, onClose }: ResultsProps) {
  const t = finderWords();
  const list = useRef<HTMLDivElement>(null);
  const chosen = useSignal("");
  const known = [...useTools(), ...useSettings()];
  const lookup = useLookup(text);
  const spoken = language.value;
  // The titles are those of the language.
  const places = useMemo(findPlaces, [spoken]);
  const groups = collect(text, places, known, lookup.entries);
  const entries = groups.flatMap((group) => group.entries);
  // While nobody has moved, the first one is chosen, whatever comes in.
  const at = Math.max(0, entries.findIndex((entry) => entry.id === chosen.value)); // prettier-ignore
  const optionId = (n: number) => `finder-result-${n}`;
  useEffect(() => void (chosen.value = ""), [chosen, text]);
  useEffect(() => {
    active.value = entries.length ? optionId(at) : "";
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, at, entries.length]);
  useEffect(() => void list.current?.scrollTo(0, 0), [text]);

  const open = (entry: Entry | undefined, inTab = false) => {
    if (!entry) return;
    rememberRecent(entry);
    if (inTab && entry.href) return void window.open(toAddress(entry.href), "_blank", "noopener");
    onClose();
    if (entry.href) navigate(entry.href);
    else entry.run?.();
  };
  const move = (to: number) => (chosen.value = entries[Math.max(0, Math.min(entries.length - 1, to))]?.id ?? "");
  keys.current = (event) => {
    if (event.key === "ArrowDown") move(at + 1 < entries.length ? at + 1 : 0);
    else if (event.key === "ArrowUp") move(at > 0 ? at - 1 : entries.length - 1);
    else if (event.key === "PageDown") move(at + PAGE);
    else if (event.key === "PageUp") move(at - PAGE);
    else if (event.key === "Enter") open(entries[at], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div ref={list} id="finder-results" class="finder-results" role="listbox" aria-label={t.results}>
        {groups.map((group) => (
          <div key={group.kind} role="group" aria-labelledby={`finder-${group.kind}`}>
            <div class="finder-kind" role="presentation" id={`finder-${group.kind}`}>
              {t[group.kind]}
            </div>
            {group.entries.map((entry) => (
              <Option
                key={entry.id}
                id={optionId(entries.indexOf(entry))}
                entry={entry}
                text={text}
                selected={entries[at] === entry}
                onPoint={() => (chosen.value = entry.id)}
                onOpen={(inTab) => open(entry, inTab)}
              />
            ))}
          </div>
        ))}
        {!entries.length && !lookup.busy && (
          <p class="quiet finder-none" role="status">
            <strong>{t.none}</strong>
            <span>{t.noneText}</span>
          </p>
        )}
      </div>
      <footer class="finder-foot">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> {t.keyMove}
        </span>
        <span>
          <kbd>↵</kbd> {t.keyOpen}
        </span>
        <span>
          <kbd>Esc</kbd> {t.keyClose}
        </span>
        <span class="grow" />
        <span class="faint" role="status">
          {lookup.busy && text.trim() ? t.searching : ""}
        </span>
      </footer>
    </>
  );
}

/** Without a text, what was opened last; else local results, and those of the server below them. */
function collect(text: string, places: Entry[], known: Entry[], remote: readonly Entry[]): Group[] {
  if (!text.trim()) {
    const some = (kind: Kind) => places.filter((one) => one.kind === kind).slice(0, FIRST);
    const groups = groupEntries([...listRecent(), ...remote, ...some("action"), ...some("page")]);
    return groups.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  }
  const { entry, filters } = searchEntry(text);
  const search: Group = { kind: "search", entries: [entry] };
  const groups = groupEntries(remote);
  if (filters) return [search, ...groups];
  const local = rankEntries([...known, ...places], text);
  return [...local, ...groups, ...(local.length || groups.length ? [search] : [])];
}

function Option({
  id,
  entry,
  text,
  selected,
  onPoint,
  onOpen,
}: {
  id: string;
  entry: Entry;
  text: string;
  selected: boolean;
  onPoint: () => void;
  onOpen: (inTab: boolean) => void;
}) {
  return (
    <div
      id={id}
      role="option"
      class="finder-option"
      aria-selected={selected}
      onMouseMove={onPoint}
      onClick={(event) => onOpen(event.ctrlKey || event.metaKey)}
    >
      <Icon sign={entry.sign} size={16} />
      <span class="finder-title cut" title={revealHidden(entry.title)} data-given={entry.given || undefined}>
        <Marked title={revealHidden(entry.title)} text={text} />
      </span>
      {entry.detail && (
        <span class="finder-detail cut" title={revealHidden(entry.detail)} data-given>
          {revealHidden(entry.detail)}
        </span>
      )}
    </div>
  );
}

/** The part of a title that was typed stands out. */
function Marked({ title, text }: { title: string; text: string }) {
  const typed = text.trim().toLowerCase();
  const at = typed ? title.toLowerCase().indexOf(typed) : -1;
  if (at < 0) return <>{title}</>;
  return (
    <>
      {title.slice(0, at)}
      <mark>{title.slice(at, at + typed.length)}</mark>
      {title.slice(at + typed.length)}
    </>
  );
}

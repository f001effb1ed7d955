/** The results for a text, in groups: the best of each kind, and the kind with the best fit first. */
import { formatQuery, KEYS, parseQuery } from "../pages/activity/query";
import { withQuery } from "../lib/api";
import { KINDS, type Entry, type Kind } from "./entry";
import { Fit, fitOf, rankOf } from "./rank";
import { finderWords } from "./words";

const MOST: Partial<Record<Kind, number>> = { tool: 6, page: 5, action: 5, setting: 5, code: 5 };

export interface Group {
  kind: Kind;
  entries: Entry[];
}

/** Local results alone, so that they stand still when those of the server follow below them. */
export function rankEntries(all: readonly Entry[], text: string): Group[] {
  const ranked = all
    .map((entry) => ({ entry, rank: rankOf(entry.names, text) }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank);
  const best = fitOf(ranked[0]?.rank ?? 0);
  // Scattered letters mean nothing where whole words were meant.
  const meant = ranked.filter((one) => best < Fit.Words || fitOf(one.rank) > Fit.Letters);
  const kinds = [...new Set(meant.map((one) => one.entry.kind))];
  const fits = new Map(kinds.map((kind) => [kind, fitOf(meant.find((one) => one.entry.kind === kind)!.rank)]));
  return kinds
    .sort((a, b) => fits.get(b)! - fits.get(a)! || KINDS.indexOf(a) - KINDS.indexOf(b))
    .map((kind) => ({
      kind,
      entries: meant
        .filter((one) => one.entry.kind === kind)
        .slice(0, MOST[kind])
        .map((one) => one.entry),
    }));
}

export function groupEntries(entries: readonly Entry[]): Group[] {
  return KINDS.map((kind) => ({ kind, entries: entries.filter((one) => one.kind === kind) })).filter(
    (group) => group.entries.length > 0,
  );
}

/** The way to Activity with the same text; `filters` if it has any of its keys. */
export function searchEntry(text: string): { entry: Entry; filters: boolean } {
  const t = finderWords();
  const { query } = parseQuery(text);
  const filters = KEYS.some((key) => query[key]);
  const typed = text.trim();
  return {
    filters,
    entry: {
      id: "search",
      kind: "search",
      sign: "search",
      title: filters ? t.showFiltered(formatQuery(query)) : t.searchCalls(typed),
      names: [],
      href: withQuery("/activity", query),
    },
  };
}

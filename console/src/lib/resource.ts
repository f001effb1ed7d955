/** Data that a page has loaded: one resource (`useResource`), or a list that grows by pages and is updated by events
 * (`useRecords`). Both say in which of their states they are, keep what they had when a reload fails, and stop when
 * the page leaves. They ask and listen in layout effects: the request is on its way while the browser paints the page. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { api, type ApiError, type Page } from "./api";
import { subscribe, reconnections } from "./events";
import { useEvent } from "./use-event";

export type State = "loading" | "ready" | "fault";
export interface Resource<T> {
  state: State;
  value: T | null;
  error: ApiError | null;
  reload: () => void;
  put: (value: T) => void;
}

/** One thing at `path` (null: none yet), loaded again when an event of `topics` comes that `concerns` it. */
export function useResource<T>(
  path: string | null,
  topics: readonly string[] = [],
  concerns: (data: Record<string, unknown>) => boolean = () => true,
): Resource<T> {
  const loaded = useSignal<{ path: string | null; state: State; value: T | null; error: ApiError | null }>({
    path,
    state: "loading",
    value: null,
    error: null,
  });
  const stop = useRef<AbortController | null>(null);
  const load = useCallback(async () => {
    stop.current?.abort();
    if (path === null) return;
    const ours = (stop.current = new AbortController());
    const before = loaded.peek();
    if (before.path !== path || (before.value === null && before.state !== "loading"))
      loaded.value = { path, state: "loading", value: null, error: null };
    await api<T>(path, { signal: ours.signal }).then(
      (value) => {
        if (!ours.signal.aborted) loaded.value = { path, state: "ready", value, error: null };
      },
      (error: ApiError) => {
        if (!ours.signal.aborted) loaded.value = { path, state: "fault", value: loaded.peek().value, error };
      },
    );
  }, [loaded, path]);
  useLayoutEffect(() => {
    void load();
    return () => stop.current?.abort();
  }, [load]);
  const later = useSoon(load);
  const isConcerned = useEvent(concerns);
  const stableTopics = useTopics(topics);
  useLayoutEffect(
    () =>
      stableTopics.length
        ? subscribe(stableTopics, (event) => {
            if (event.type === "gap" || isConcerned(event.data)) later();
          })
        : undefined,
    [stableTopics, isConcerned, later],
  );
  const connection = reconnections.value;
  const lastConnection = useRef(connection);
  useEffect(() => {
    if (lastConnection.current !== connection) {
      lastConnection.current = connection;
      void load();
    }
  }, [connection, load]);
  const reload = useCallback(() => void load(), [load]);
  const now = loaded.value.path === path ? loaded.value : { state: "loading" as State, value: null, error: null };
  return {
    state: now.state,
    value: now.value,
    error: now.error,
    reload,
    put: (value) => {
      stop.current?.abort();
      loaded.value = { path, state: "ready", value, error: null };
    },
  };
}

export interface Row {
  id: string;
}
interface Loaded<T> {
  path: string;
  state: State;
  rows: T[];
  error: ApiError | null;
  next: string | null;
  busy: boolean;
}
export interface Records<T> {
  state: State;
  rows: T[];
  error: ApiError | null;
  next: string | null;
  busy: boolean;
  newCount: number;
  paused: boolean;
  more: () => void;
  reload: () => void;
  pause: (on: boolean) => void;
  put: (row: T) => void;
  drop: (id: string) => void;
}

/** A list, newest first. Events of `topics` bring its changes in, at most three times a second; while paused they are
 * only counted (those that `counts` says belong here), nothing moves, and nothing is lost: going on loads them. `one`
 * is the path of a single row, for rows further down; `place` is by what the list is sorted, the largest first. */
export function useRecords<T extends Row>(
  path: string,
  topics: readonly string[],
  one?: (id: string) => string,
  counts: (data: Record<string, unknown>) => boolean = () => true,
  place: (row: T) => number = placeByAge,
): Records<T> {
  const loaded = useSignal<Loaded<T>>(noRows(path));
  const paused = useSignal(false);
  const newCount = useSignal(0);
  const missed = useRef(new Set<string>());
  const changed = useRef(new Map<string, Record<string, unknown>>()); // not yet read, with what the event said
  const stop = useRef<AbortController | null>(null);
  const belongs = useEvent(counts);
  const pathOf = useEvent((id: string) => one?.(id) ?? null);
  const placeOf = useEvent(place);

  const load = useCallback(
    async (fresh: boolean) => {
      stop.current?.abort();
      const ours = (stop.current = new AbortController());
      if (fresh && (loaded.peek().path !== path || loaded.peek().state !== "loading")) loaded.value = noRows(path);
      const ids = [...changed.current.keys()];
      await api<Page<T>>(path, { signal: ours.signal }).then(
        async (page) => {
          if (ours.signal.aborted) return;
          for (const id of ids) changed.current.delete(id);
          const before = fresh ? [] : loaded.peek().rows;
          const got = new Map(page.data.map((row) => [row.id, row]));
          // Where little of the page was known, rows between it and ours may be missing, also some that were being written
          // when ours were read: begin anew from the page.
          const met = before.filter((row) => got.has(row.id)).length;
          const joins = met > 0 && met >= Math.min(EDGE, before.length, page.data.length / 2);
          const further = joins ? before.filter((row) => !got.has(row.id) && isBelow(row, page, placeOf)) : [];
          loaded.value = {
            path,
            state: "ready",
            rows: [...page.data, ...further],
            error: null,
            next: further.length ? loaded.peek().next : page.next,
            busy: false,
          };
          for (const id of ids.filter((id) => !got.has(id) && further.some((row) => row.id === id)).slice(0, 20)) {
            const place = pathOf(id);
            if (place === null) break;
            const row = await api<T>(place, { signal: ours.signal }).catch(() => null);
            if (row && !ours.signal.aborted)
              loaded.value = { ...loaded.peek(), rows: loaded.peek().rows.map((old) => (old.id === id ? row : old)) };
          }
        },
        (error: ApiError) => {
          if (!ours.signal.aborted) loaded.value = { ...loaded.peek(), path, state: "fault", error, busy: false };
        },
      );
    },
    [loaded, path, pathOf, placeOf],
  );

  useLayoutEffect(() => {
    missed.current.clear();
    newCount.value = 0;
    void load(true);
    return () => stop.current?.abort();
  }, [load, newCount]);
  const later = useSoon(async () => {
    if (!paused.peek()) await load(false);
  });
  const count = useCallback(
    (id: string, data: Record<string, unknown>) => {
      if (belongs(data) && !loaded.peek().rows.some((row) => row.id === id))
        newCount.value = missed.current.add(id).size;
    },
    [belongs, loaded, newCount],
  );
  const stableTopics = useTopics(topics);
  useLayoutEffect(
    () =>
      subscribe(stableTopics, (event) => {
        const id = typeof event.data.id === "string" ? event.data.id : "";
        if (id) changed.current.set(id, event.data);
        if (!paused.peek()) return later();
        if (id) count(id, event.data);
      }),
    [count, stableTopics, later, paused],
  );
  const connection = reconnections.value;
  const lastConnection = useRef(connection);
  useEffect(() => {
    if (lastConnection.current === connection) return;
    lastConnection.current = connection;
    if (!paused.peek()) void load(false);
  }, [connection, load, paused]);

  const more = useCallback(() => {
    const { next, busy } = loaded.peek();
    if (!next || busy) return;
    loaded.value = { ...loaded.peek(), busy: true };
    api<Page<T>>(`${path}${path.includes("?") ? "&" : "?"}after=${encodeURIComponent(next)}`).then(
      (page) => {
        if (loaded.peek().path !== path) return;
        // The list began anew meanwhile: these rows belong further down than it reaches.
        if (loaded.peek().next !== next) return void (loaded.value = { ...loaded.peek(), busy: false });
        const known = new Set(loaded.peek().rows.map((row) => row.id));
        loaded.value = {
          ...loaded.peek(),
          rows: [...loaded.peek().rows, ...page.data.filter((row) => !known.has(row.id))],
          next: page.next,
          busy: false,
        };
      },
      (error: ApiError) => {
        if (loaded.peek().path === path) loaded.value = { ...loaded.peek(), error, busy: false };
      },
    );
  }, [loaded, path]);
  const reload = useCallback(
    () => void load(loaded.peek().path !== path || loaded.peek().rows.length === 0),
    [loaded, load, path],
  );

  const current = loaded.value.path === path ? loaded.value : noRows<T>(path);
  return {
    ...current,
    paused: paused.value,
    newCount: newCount.value,
    more,
    reload,
    pause: (on) => {
      paused.value = on;
      if (on) {
        if (loaded.peek().state === "ready") stop.current?.abort(); // what is on its way counts as what comes
        for (const [id, data] of changed.current) count(id, data);
      } else {
        missed.current.clear();
        newCount.value = 0;
        void load(false);
      }
    },
    put: (row) =>
      (loaded.value = {
        ...loaded.peek(),
        rows: loaded.peek().rows.some((old) => old.id === row.id)
          ? loaded.peek().rows.map((old) => (old.id === row.id ? row : old))
          : [row, ...loaded.peek().rows],
      }),
    drop: (id) => (loaded.value = { ...loaded.peek(), rows: loaded.peek().rows.filter((row) => row.id !== id) }),
  };
}

function noRows<T>(path: string): Loaded<T> {
  return { path, state: "loading", rows: [], error: null, next: null, busy: false };
}

/** The same list for as long as it has the same topics: pages write theirs anew at every render. */
function useTopics(topics: readonly string[]): readonly string[] {
  const key = topics.join();
  return useMemo(() => (key ? key.split(",") : []), [key]);
}

/** True if a row that we have belongs below the page just loaded: it is older than the last row of that page. */
function isBelow<T>(row: T, page: Page<T>, place: (row: T) => number): boolean {
  const last = page.data[page.data.length - 1];
  return page.next !== null && last !== undefined && place(row) <= place(last);
}

/** The newest first. */
function placeByAge(row: object): number {
  const { started, created, at } = row as { started?: number; created?: number; at?: number };
  return started ?? created ?? at ?? 0;
}

/** So many of the newest rows may be read before one that is older is written. */
const EDGE = 25;
const EACH_MS = 300;
const FIRST_MS = 40;

/** `run`, but at most once in 300 ms, and surely after the last wish. The first wish after a rest is met almost at
 * once: a press of a button shows what it did. What runs is let end first: under a constant stream of events a slow
 * answer would else never arrive. */
function useSoon(run: () => Promise<void>): () => void {
  const latest = useRef(run);
  latest.current = run;
  const timer = useRef(0);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = -1;
    },
    [],
  );
  return useMemo(() => {
    let runs = false;
    let again = false;
    let last = -Infinity;
    const later = () => {
      if (timer.current) return;
      timer.current = window.setTimeout(start, Math.max(FIRST_MS, EACH_MS - (performance.now() - last)));
    };
    const start = async () => {
      timer.current = 0;
      last = performance.now();
      again = runs;
      if (runs) return;
      runs = true;
      await latest.current();
      runs = false;
      if (again) later();
    };
    return later;
  }, []);
}

/** What a time that is being written means, asked of the server when the typing rests. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../../lib/api";
import type { Preview } from "./types";

const REST_MS = 250;

export function usePreview(when: { at: string } | { cron: string }): { preview: Preview | null; looking: boolean } {
  const held = useSignal<{ key: string; preview: Preview | null }>({ key: "", preview: null });
  const key = JSON.stringify(when);
  const isEmpty = !("at" in when ? when.at : when.cron).trim();
  useEffect(() => {
    if (isEmpty) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      api<Preview>("/v1/schedules/preview", { body: when, signal: stop.signal }).then(
        (preview) => (held.value = { key, preview }),
        // The server judges it again when it is saved: no preview is no obstacle.
        () => { if (!stop.signal.aborted) held.value = { key, preview: null }; },
      );
    }, REST_MS);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [key]);
  const isNow = held.value.key === key;
  return { preview: isNow && !isEmpty ? held.value.preview : null, looking: !isNow && !isEmpty };
}

/** The meaning of a typed time, requested from the server when typing pauses, and repeatedly afterwards: a relative
 * time moves on, and a time that has passed is no longer valid. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import type { SchedulePreview } from "toolyard-client";
import { api } from "../../lib/api";

const REST_MS = 250;
const AGAIN_MS = 15_000;
export type WhenInput = { at: string } | { cron: string };
/** `came` in milliseconds since 1970: the time until the first run counts from there. */
export interface TimedPreview extends SchedulePreview {
  came: number;
}
interface Held {
  key: string;
  preview: TimedPreview | null;
  zone: string;
  offset: string;
}

export function usePreview(when: WhenInput): {
  preview: TimedPreview | null;
  looking: boolean;
  zone: string;
  offset: string;
  look: () => Promise<TimedPreview | null>;
} {
  const held = useSignal<Held>({ key: "", preview: null, zone: "", offset: "" });
  const key = JSON.stringify(when);
  const isEmpty = !("at" in when ? when.at : when.cron);
  const look = useCallback(
    async (signal?: AbortSignal) => {
      const preview = {
        ...(await api<SchedulePreview>("/v1/schedules/preview", { body: JSON.parse(key) as WhenInput, signal })),
        came: Date.now(),
      };
      held.value = { key, preview: isEmpty ? null : preview, zone: preview.zone, offset: preview.offset };
      return held.value.preview;
    },
    [held, isEmpty, key],
  );
  useEffect(() => {
    const stop = new AbortController();
    const ask = () =>
      void look(stop.signal).catch(() => {
        // The server judges it again when it is saved: no preview is no obstacle.
        if (!stop.signal.aborted) held.value = { ...held.peek(), key, preview: null };
      });
    const first = setTimeout(ask, isEmpty ? 0 : REST_MS);
    const again = isEmpty ? 0 : setInterval(ask, AGAIN_MS);
    return () => {
      clearTimeout(first);
      clearInterval(again);
      stop.abort();
    };
  }, [held, isEmpty, key, look]);
  const { preview, zone, offset } = held.value;
  const isNow = held.value.key === key;
  return { preview: isNow ? preview : null, looking: !isNow && !isEmpty, zone, offset, look };
}

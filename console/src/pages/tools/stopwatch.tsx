/** The time since a start, in tenths of a second. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatDuration } from "../../lib/clock";
import { tryWords } from "./words-try";

export function Stopwatch({ from }: { from: number }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (now.value = Date.now()), 100);
    return () => clearInterval(timer);
  }, [now]);
  return (
    <span class="tabular" role="timer" aria-live="off">
      {tryWords().running(formatDuration((now.value - from) / 1000))}
    </span>
  );
}

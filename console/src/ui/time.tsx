/** Times that live: ago, elapsed, countdown. The absolute time with its offset is one hover away. */
import { formatAbsolute, formatDuration, now, formatRelative } from "../lib/clock";

export function Ago({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={formatAbsolute(at)}>
      {formatRelative(at)}
    </time>
  );
}

/** The time elapsed since `from`, or up to `to` if it has ended; both in seconds since 1970. */
export function Elapsed({ from, to }: { from: number; to?: number | null }) {
  return <span class="tabular">{formatDuration((to ?? now.value / 1000) - from)}</span>;
}

export function Countdown({ to }: { to: number }) {
  return (
    <span class="tabular" role="timer">
      {formatDuration(Math.ceil(Math.max(0, to - now.value / 1000)))}
    </span>
  );
}

/** Moments as the server's zone has them: the offset is always said. */
import { dateFormat, language } from "../../lib/language";

const ISO = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2}))?(?:\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** `Sat, Nov 21, 14:00 +08:00`; the time of the text itself, not moved to the zone of the browser. */
export function formatIso(iso: string): string {
  const parts = ISO.exec(iso);
  if (!parts) return iso;
  const local = new Date(`${parts[1]}:${parts[2] ?? "00"}Z`);
  const near = local.getUTCFullYear() === new Date().getFullYear();
  const text = dateFormat({
    weekday: "short",
    month: "short",
    day: "numeric",
    year: near ? undefined : "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: parts[2] && parts[2] !== "00" ? "2-digit" : undefined,
    hour12: false,
    timeZone: "UTC",
  }).format(local);
  return `${text} ${parts[3] === "Z" ? "+00:00" : parts[3]}`;
}

export function toSeconds(iso: string): number {
  return Date.parse(iso) / 1000;
}

/** `2026-11-21`, the day of a moment in a zone. */
export function dayOf(at: number, zone: string | undefined): string {
  const shape = { year: "numeric", month: "2-digit", day: "2-digit", timeZone: zone } as const;
  return dateFormat(shape, "en-CA").format(at * 1000);
}

export function timeOf(at: number, zone: string | undefined): string {
  return dateFormat({ hour: "2-digit", minute: "2-digit", hour12: false, timeZone: zone }).format(at * 1000);
}

/** The days from one on, counted by the calendar: a day may have 23 or 25 hours. */
export function daysFrom(day: string, count: number): string[] {
  const [year, month, date] = day.split("-").map(Number) as [number, number, number];
  return Array.from({ length: count }, (_, at) =>
    new Date(Date.UTC(year, month - 1, date + at)).toISOString().slice(0, 10),
  );
}

export function weekday(day: string): string {
  return dateFormat({ weekday: "short", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
}

/** Times that are often wanted, as the server understands them: in a minute, in an hour, tomorrow morning. */
export function quickTimes(): string[] {
  return language.value === "zh"
    ? ["1 分钟后", "1 小时后", "明天 9:00"]
    : ["in 1 minute", "in 1 hour", "tomorrow 9:00"];
}

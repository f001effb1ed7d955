/** Time as people read it: relative, with the absolute time and its offset at hand. One timer for the whole page. */
import { computed, signal } from "@preact/signals";
import { dateFormat, dictionary, formatNumber, plural } from "./language";

const tick = signal(Date.now());
setInterval(() => (tick.value = Date.now()), 1000);
/** Milliseconds since 1970, new each second. */
export const now = computed(() => tick.value);

const words = dictionary(
  {
    now: "just now",
    years: (n: number) => plural(n, { one: "# year", other: "# years" }),
    days: (n: number) => `${formatNumber(n)} d`,
    hours: (n: number) => `${n} h`,
    minutes: (n: number) => `${n} min`,
    seconds: (n: string) => `${n} s`,
    ago: (t: string) => `${t} ago`,
    ahead: (t: string) => `in ${t}`,
  },
  {
    now: "刚刚",
    years: (n: number) => plural(n, { other: "# 年" }),
    days: (n: number) => `${formatNumber(n)} 天`,
    hours: (n: number) => `${n} 小时`,
    minutes: (n: number) => `${n} 分钟`,
    seconds: (n: string) => `${n} 秒`,
    ago: (t: string) => `${t}前`,
    ahead: (t: string) => `${t}后`,
  },
);

/** `3.4 s`, `2 min 5 s`, `3 h 12 min`, `2 d 4 h`, `40 d`, `1 year 35 d`. */
export function formatDuration(seconds: number): string {
  const t = words();
  const s = Math.max(0, seconds);
  if (s > 0 && s < 0.001) return t.seconds(`<${formatNumber(0.001, 3)}`);
  if (s < 60 && Number.isInteger(s)) return t.seconds(String(s));
  if (s < 1) return t.seconds(formatNumber(s, s < 0.0095 ? 3 : 2));
  if (s < 60) return t.seconds(s < 10 ? formatNumber(s, 1) : String(Math.floor(s)));
  const whole = Math.floor(s);
  if (whole < 3600) return join(t.minutes(Math.floor(whole / 60)), whole % 60 ? t.seconds(String(whole % 60)) : "");
  if (whole < 86400)
    return join(
      t.hours(Math.floor(whole / 3600)),
      whole % 3600 >= 60 ? t.minutes(Math.floor((whole % 3600) / 60)) : "",
    );
  const days = Math.floor(whole / 86400);
  if (days >= 365) return join(t.years(Math.floor(days / 365)), days % 365 ? t.days(days % 365) : "");
  return join(t.days(days), days < 30 && whole % 86400 >= 3600 ? t.hours(Math.floor((whole % 86400) / 3600)) : "");
}

function join(a: string, b: string): string {
  return b ? `${a} ${b}` : a;
}

/** `at` in seconds since 1970, relative to now. */
export function formatRelative(at: number): string {
  const t = words();
  const away = now.value / 1000 - at;
  if (Math.abs(away) < 5) return t.now;
  return away > 0 ? t.ago(formatRough(away)) : t.ahead(formatRough(-away));
}

function formatRough(seconds: number): string {
  const t = words();
  if (seconds < 60) return t.seconds(String(Math.floor(seconds)));
  if (seconds < 3600) return t.minutes(Math.floor(seconds / 60));
  if (seconds < 86400) return t.hours(Math.floor(seconds / 3600));
  return t.days(Math.floor(seconds / 86400));
}

/** Date, time and offset in the browser's zone, or in another one. The offset stands last in every language. */
export function formatAbsolute(at: number, zone?: string): string {
  const when = new Date(at * 1000);
  const shape: Intl.DateTimeFormatOptions = {
    year: "numeric",
    month: "short",
    day: "numeric",
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
    timeZone: zone,
  };
  const offset = dateFormat({ timeZoneName: "longOffset", timeZone: zone }, "en")
    .formatToParts(when)
    .find((part) => part.type === "timeZoneName");
  return `${dateFormat(shape).format(when)} ${offset?.value ?? ""}`;
}

export function formatClockTime(ms: number): string {
  return dateFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }).format(ms);
}

/** The time of day of a moment today; of another day its date and time, and of another year its date. */
export function formatMoment(at: number): string {
  const [when, today] = [new Date(at * 1000), new Date(now.value)];
  if (when.toDateString() === today.toDateString()) return formatClockTime(at * 1000);
  const isThisYear = when.getFullYear() === today.getFullYear();
  return dateFormat({
    month: "short",
    day: "numeric",
    ...(isThisYear ? { hour: "2-digit", minute: "2-digit", hour12: false } : { year: "numeric" }),
  }).format(when);
}

export function formatBytes(count: number): string {
  if (count < 1024) return `${formatNumber(count)} B`;
  if (count < 1024 ** 2) return `${formatNumber(count / 1024, 1)} KiB`;
  if (count < 1024 ** 3) return `${formatNumber(count / 1024 ** 2, 1)} MiB`;
  return `${formatNumber(count / 1024 ** 3, 1)} GiB`;
}

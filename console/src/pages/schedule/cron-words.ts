/** A cron expression in words, if it is one of those that people write: "every day at 9:00". */
import { dateFormat, dictionary, joinWords, locale, plural } from "../../lib/language";

const words = dictionary(
  {
    everyMinute: "every minute",
    minutes: (n: number) => plural(n, { one: "every minute", other: "every # minutes" }),
    everyHour: "every hour",
    hourAt: (minute: string) => `every hour at :${minute}`,
    hours: (n: number) => plural(n, { one: "every hour", other: "every # hours" }),
    day: (time: string) => `every day at ${time}`,
    weekdays: (time: string) => `Monday to Friday at ${time}`,
    week: (days: string, time: string) => `every ${days} at ${time}`,
    month: (day: number, time: string) => `on day ${day} of every month at ${time}`,
    year: (month: string, day: number, time: string) => `every year on ${month} ${day} at ${time}`,
  },
  {
    everyMinute: "每分钟",
    minutes: (n: number) => plural(n, { other: "每 # 分钟" }),
    everyHour: "每小时",
    hourAt: (minute: string) => `每小时的第 ${Number(minute)} 分钟`,
    hours: (n: number) => plural(n, { other: "每 # 小时" }),
    day: (time: string) => `每天 ${time}`,
    weekdays: (time: string) => `周一至周五 ${time}`,
    week: (days: string, time: string) => `每${days} ${time}`,
    month: (day: number, time: string) => `每月 ${day} 日 ${time}`,
    year: (month: string, day: number, time: string) => `每年${month} ${day} 日 ${time}`,
  },
);
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WORKDAYS = /^(1-5|mon-fri)$/i;

/** Null if it cannot be said in a few words. */
export function cronWords(cron: string): string | null {
  const t = words();
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  if (day === "*" && month === "*" && weekday === "*") {
    if (hour === "*") return hourly(minute);
    const step = stepOf(hour, 24);
    if (step) return minute === "0" ? t.hours(step) : null;
  }
  const [m, h] = [numberOf(minute, 59), numberOf(hour, 23)];
  if (m === null || h === null) return null;
  const time = `${h}:${String(m).padStart(2, "0")}`;
  if (month === "*" && day === "*") {
    if (weekday === "*") return t.day(time);
    if (WORKDAYS.test(weekday)) return t.weekdays(time);
    const days = weekday.split(",").map(dayOf);
    return days.every((one) => one !== null) ? t.week(joinWords(days.map(dayName)), time) : null;
  }
  const date = numberOf(day, 31);
  if (weekday !== "*" || !date) return null;
  if (month === "*") return t.month(date, time);
  const number = numberOf(month, 12);
  return number ? t.year(monthName(number), date, time) : null;
}

function hourly(minute: string): string | null {
  const t = words();
  if (minute === "*") return t.everyMinute;
  const step = stepOf(minute, 60);
  if (step) return t.minutes(step);
  const at = numberOf(minute, 59);
  return at === null ? null : at === 0 ? t.everyHour : t.hourAt(String(at).padStart(2, "0"));
}

/** The step of a star with a step; only one that divides the whole comes again after the same time. */
function stepOf(field: string, whole: number): number | null {
  const step = Number(/^\*\/(\d{1,2})$/.exec(field)?.[1] ?? 0);
  return step && whole % step === 0 ? step : null;
}

function numberOf(field: string, most: number): number | null {
  return /^\d{1,2}$/.test(field) && Number(field) <= most ? Number(field) : null;
}

function dayOf(field: string): number | null {
  const named = DAYS.indexOf(field.toLowerCase());
  if (named >= 0) return named;
  const number = numberOf(field, 7);
  return number === null ? null : number % 7;
}

/** The first of January 2023 was a Sunday. */
const dayName = (day: number) =>
  dateFormat({ weekday: locale() === "en" ? "long" : "short" }).format(new Date(2023, 0, 1 + day));
const monthName = (month: number) => dateFormat({ month: "long" }).format(new Date(2023, month - 1, 1));

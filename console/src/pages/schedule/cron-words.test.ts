import { afterEach, expect, test } from "vitest";
import { language } from "../../lib/language";
import { cronWords } from "./cron-words";

afterEach(() => {
  language.value = "en";
});

test.each([
  ["* * * * *", "every minute", "每分钟"],
  ["*/5 * * * *", "every 5 minutes", "每 5 分钟"],
  ["0 * * * *", "every hour", "每小时"],
  ["5 * * * *", "every hour at :05", "每小时的第 5 分钟"],
  ["0 */6 * * *", "every 6 hours", "每 6 小时"],
  ["0 9 * * *", "every day at 9:00", "每天 9:00"],
  ["30 14 * * 1-5", "Monday to Friday at 14:30", "周一至周五 14:30"],
  ["0 9 * * 1", "every Monday at 9:00", "每周一 9:00"],
  ["0 9 * * sun,3", "every Sunday, Wednesday at 9:00", "每周日、周三 9:00"],
  ["0 8 1 * *", "on day 1 of every month at 8:00", "每月 1 日 8:00"],
  ["0 8 5 3 *", "every year on March 5 at 8:00", "每年三月 5 日 8:00"],
])("%s is %s", (cron, english, chinese) => {
  expect(cronWords(cron)).toBe(english);
  language.value = "zh";
  expect(cronWords(cron)).toBe(chinese);
});

test.each(["*/7 * * * *", "0 9 1 * 1", "0,30 9 * * *", "0 9 * 1-6 *", "0 9", "60 9 * * *", "15 */2 * * *"])(
  "%s stays as it is",
  (cron) => expect(cronWords(cron)).toBeNull(),
);

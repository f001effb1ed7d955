/** The console without its server: it says so, tries again, and starts anew with the first answer, because the server may
 * have another console by then. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, openSession } from "./lib/api";
import { now } from "./lib/clock";
import { dictionary } from "./lib/language";
import { useEvent } from "./lib/use-event";
import { Button } from "./ui/button";
import { Empty } from "./ui/state";

const LONGEST_MS = 10_000;
const words = dictionary(
  {
    title: "The server cannot be reached",
    noNetwork: "This device has no network connection.",
    noAnswer: (host: string) => `Toolyard at ${host} does not answer. It may be stopped or restarting.`,
    trying: "Trying again…",
    next: (seconds: number) => `Next try in ${seconds} s`,
    tryNow: "Try now",
  },
  {
    title: "无法连接服务器",
    noNetwork: "此设备没有网络连接。",
    noAnswer: (host: string) => `${host} 上的 Toolyard 没有响应，可能已停止或正在重启。`,
    trying: "正在重试…",
    next: (seconds: number) => `${seconds} 秒后重试`,
    tryNow: "立即重试",
  },
);

/** Whether nobody has answered: not the server, at most a proxy in front of it. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ApiError && [0, 502, 503, 504].includes(error.status);
}

export function Unreachable() {
  const t = words();
  const attempts = useSignal(0);
  const nextAt = useSignal(Date.now() + 1000);
  const isTrying = useSignal(false);
  const tryAgain = useEvent(async () => {
    if (isTrying.value) return;
    isTrying.value = true;
    try {
      await openSession();
      location.reload();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return; // on its way to the login
      if (!isUnreachable(error)) return location.reload();
      attempts.value += 1;
      nextAt.value = Date.now() + Math.min(LONGEST_MS, 1000 * 2 ** attempts.value);
      isTrying.value = false;
    }
  });
  useEffect(() => {
    const timer = setTimeout(() => void tryAgain(), nextAt.value - Date.now());
    return () => clearTimeout(timer);
  }, [nextAt.value, nextAt, tryAgain]);
  useEffect(() => {
    const wake = () => document.visibilityState === "visible" && void tryAgain();
    addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    return () => {
      removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [tryAgain]);
  const seconds = Math.max(0, Math.ceil((nextAt.value - now.value) / 1000));
  return (
    <main class="alone">
      <Empty
        sign="warning"
        title={t.title}
        isPage
        action={
          <>
            <p class="faint tabular">{isTrying.value || !seconds ? t.trying : t.next(seconds)}</p>
            <Button kind="primary" sign="retry" onClick={tryAgain}>
              {t.tryNow}
            </Button>
          </>
        }
      >
        {navigator.onLine ? t.noAnswer(location.host) : t.noNetwork}
      </Empty>
    </main>
  );
}

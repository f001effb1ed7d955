/** The states that every list and page has beside its content: loading, empty, fault, and a note. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../lib/api";
import { dictionary } from "../lib/language";
import { Button } from "./button";
import { Icon, type Sign } from "./icon";

const words = dictionary(
  { loading: "Loading", failed: "This could not be loaded", retry: "Try again", request: "request", unreachable: "The server cannot be reached." },
  { loading: "加载中", failed: "无法加载", retry: "重试", request: "请求", unreachable: "无法连接服务器。" },
);

export function Loading({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={words().loading}>
      {Array.from({ length: rows }, (_, at) => <div key={at} class="bone" />)}
    </div>
  );
}

export function Empty({ sign = "info", title, children, action }: { sign?: Sign; title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon sign={sign} size={32} />
      <h2>{title}</h2>
      {children && <p class="quiet">{children}</p>}
      {action}
    </div>
  );
}

export function Fault({ error, retry, title }: { error: ApiError | Error | null; retry?: () => void; title?: string }) {
  const t = words();
  const told = error as Partial<ApiError> | null;
  return (
    <div class="fault" role="alert">
      <Icon sign="error" size={20} />
      <div class="grow">
        <strong>{title ?? t.failed}</strong>
        <p>{told?.code === "unreachable" ? t.unreachable : error?.message}</p>
        <p class="faint mono">{[told?.status ? `HTTP ${told.status}` : "", told?.code, told?.request ? `${t.request} ${told.request}` : ""].filter(Boolean).join(" · ")}</p>
      </div>
      {retry && <Button sign="retry" onClick={retry}>{t.retry}</Button>}
    </div>
  );
}

export function Notice({ tone = "info", children, action }: { tone?: "info" | "warn" | "bad" | "good"; children: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role="note">
      <Icon sign={tone === "good" ? "check" : tone === "info" ? "info" : "warning"} size={18} />
      <div class="grow">{children}</div>
      {action}
    </div>
  );
}

/** The states that every list and page has beside its content: loading, empty, fault, and a note. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../lib/api";
import { dictionary, language } from "../lib/language";
import { isTranslatable, type ServerMessage } from "../lib/messages";
import { Button } from "./button";
import { Icon, type Sign } from "./icon";
import { MessageText } from "./message-text";

const words = dictionary(
  {
    loading: "Loading",
    failed: "Could not be loaded",
    retry: "Try again",
    request: "request",
    unreachable: "The server cannot be reached.",
  },
  { loading: "加载中", failed: "加载失败", retry: "重试", request: "请求", unreachable: "无法连接服务器。" },
);
/** Chinese texts for error codes of the server. In English the message itself is shown. */
const CODES: Record<string, string> = {
  bad_request: "请求有误。",
  invalid_request: "请求有误。",
  invalid_param: "输入有误。",
  unauthorized: "需要重新登录。",
  forbidden: "没有权限。",
  access_denied: "没有权限，或被拒绝。",
  permission_denied: "操作系统不允许。",
  not_found: "没有找到。",
  conflict: "已有改动或正在使用，请重新载入后再试。",
  request_timeout: "请求太慢，已放弃。",
  timeout: "超时。",
  body_too_large: "内容太大。",
  unsupported_media_type: "不支持这种内容。",
  misdirected_request: "这个地址不属于本服务器。",
  too_many_requests: "请求太多，请稍后再试。",
  internal_server_error: "Toolyard 内部出错，日志中有详情。",
  internal_error: "Toolyard 内部出错，日志中有详情。",
  service_unavailable: "服务器暂时不接受请求。",
  insufficient_storage: "磁盘空间不足。",
  storage: "数据无法读写。",
  execution_error: "执行失败。",
  is_directory: "这是文件夹。",
  binary_file: "这是二进制文件。",
};

export function Loading({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={words().loading}>
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} class="bone" />
      ))}
    </div>
  );
}

export function Empty({
  sign = "info",
  title,
  isPage = false,
  children,
  action,
}: {
  sign?: Sign;
  title: string;
  /** It is the whole page, and its title is the heading of the page. */
  isPage?: boolean;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  const Heading = isPage ? "h1" : "h2";
  return (
    <div class="empty">
      <Icon sign={sign} size={32} />
      <Heading>{title}</Heading>
      {children && <p class="quiet">{children}</p>}
      {action}
    </div>
  );
}

export function Fault({ error, retry, title }: { error: ApiError | Error | null; retry?: () => void; title?: string }) {
  const t = words();
  const apiError = error as Partial<ApiError> | null;
  return (
    <div class="fault" role="alert">
      <Icon sign="error" size={20} />
      <div class="grow">
        <strong>{title ?? t.failed}</strong>
        <ErrorText error={error} />
        <p class="faint mono" data-given>
          {[
            apiError?.status ? `HTTP ${apiError.status}` : "",
            apiError?.code,
            apiError?.request ? `${t.request} ${apiError.request}` : "",
          ]
            .filter(Boolean)
            .join(" · ")}
        </p>
      </div>
      {retry && (
        <Button sign="retry" onClick={retry}>
          {t.retry}
        </Button>
      )}
    </div>
  );
}

/** What went wrong, in the language of the page. */
export function ErrorText({ error }: { error: ApiError | Error | null }) {
  const apiError = error as Partial<ApiError> | null;
  return apiError?.code === "unreachable" ? (
    <p>{words().unreachable}</p>
  ) : (
    <Explanation code={apiError?.code ?? ""} message={apiError?.serverMessage ?? { text: error?.message ?? "" }} />
  );
}

/** The message of the server; if there is no translation, it is preceded by the meaning of its code. */
function Explanation({ code, message }: { code: string; message: ServerMessage }) {
  const means = language.value === "zh" && !isTranslatable(message) ? CODES[code.toLowerCase()] : "";
  return (
    <>
      {means && <p>{means}</p>}
      <p class={means ? "faint" : ""}>
        <MessageText message={message} />
      </p>
    </>
  );
}

const NOTICE_SIGNS = { info: "info", warn: "warning", bad: "error", good: "check" } as const;

export function Notice({
  tone = "info",
  children,
  action,
}: {
  tone?: "info" | "warn" | "bad" | "good";
  children: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={`notice ${tone}`} role="note">
      <Icon sign={NOTICE_SIGNS[tone]} size={18} />
      <div class="grow">{children}</div>
      {action}
    </div>
  );
}

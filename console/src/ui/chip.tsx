/** A state as a colour, an icon and a word. */
import { dictionary } from "../lib/language";

const words = dictionary(
  {
    queued: "queued",
    pending: "waiting",
    running: "running",
    started: "running",
    success: "success",
    succeeded: "done",
    done: "done",
    partial: "partial",
    error: "error",
    failed: "failed",
    cancelled: "cancelled",
    denied: "denied",
    allowed: "allowed",
    expired: "expired",
    timeout: "timed out",
    timed_out: "timed out",
    interrupted: "interrupted",
    approval: "waiting for approval",
    scheduled: "scheduled",
    proposed: "proposed",
    paused: "paused",
    late: "late",
    blocked: "blocked",
    ready: "ready",
    disabled: "disabled",
    needs_review: "needs review",
    missing_config: "needs configuration",
    static: "static",
    submitted: "submitted",
    received: "received",
    lost: "lost",
    missed: "missed",
    ok: "OK",
    warn: "warning",
    fail: "failed",
    waiting: "waiting",
    waiting_callback: "running",
  },
  {
    queued: "排队中",
    pending: "等待中",
    running: "运行中",
    started: "运行中",
    success: "成功",
    succeeded: "已完成",
    done: "已完成",
    partial: "部分完成",
    error: "错误",
    failed: "失败",
    cancelled: "已取消",
    denied: "已拒绝",
    allowed: "已允许",
    expired: "已过期",
    timeout: "超时",
    timed_out: "超时",
    interrupted: "已中断",
    approval: "等待审批",
    scheduled: "已安排",
    proposed: "待允许",
    paused: "已暂停",
    late: "已延迟",
    blocked: "等待审批",
    ready: "就绪",
    disabled: "已停用",
    needs_review: "待审查",
    missing_config: "缺少配置",
    static: "静态",
    submitted: "已提交",
    received: "已收到",
    lost: "丢失",
    missed: "错过",
    ok: "正常",
    warn: "警告",
    fail: "失败",
    waiting: "等待中",
    waiting_callback: "运行中",
  },
);
export type Tone = "good" | "bad" | "warn" | "info" | "plain";
const TONES: Record<string, Tone> = {
  success: "good",
  succeeded: "good",
  done: "good",
  allowed: "good",
  ready: "good",
  ok: "good",
  received: "good",
  error: "bad",
  failed: "bad",
  fail: "bad",
  denied: "bad",
  timeout: "bad",
  timed_out: "bad",
  lost: "bad",
  missed: "bad",
  partial: "warn",
  expired: "warn",
  interrupted: "warn",
  approval: "warn",
  proposed: "warn",
  needs_review: "warn",
  missing_config: "warn",
  late: "warn",
  blocked: "warn",
  warn: "warn",
  running: "info",
  started: "info",
  queued: "info",
  pending: "info",
  waiting: "info",
  scheduled: "info",
  submitted: "info",
  waiting_callback: "info",
};

export const STATES: readonly string[] = Object.keys(TONES);

export function stateWord(state: string): string {
  return ((words() as Record<string, unknown>)[state] as string | undefined) ?? state;
}

export function StateChip({ state }: { state: string }) {
  return (
    <Chip
      tone={TONES[state] ?? "plain"}
      live={state === "running" || state === "started" || state === "waiting_callback"}
      title={stateWord(state)}
    >
      {stateWord(state)}
    </Chip>
  );
}

export function Chip({
  tone = "plain",
  live = false,
  children,
  title,
}: {
  tone?: Tone;
  live?: boolean;
  children: preact.ComponentChildren;
  title?: string;
}) {
  return (
    <span class={`chip ${tone}${live ? " live" : ""}`} title={title}>
      <i aria-hidden="true" />
      {children}
    </span>
  );
}

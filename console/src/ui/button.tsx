/** Buttons, always with a name. `busy` keeps a button from being pressed twice and says so. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, Ref } from "preact";
import { ApiError } from "../lib/api";
import { copyText } from "../lib/copy";
import { showToast, UserError, type Toast } from "../lib/toast";
import { dictionary } from "../lib/language";
import { Icon, type Sign } from "./icon";

const words = dictionary(
  { copy: "Copy", copied: "Copied", failed: "The operation failed" },
  { copy: "复制", copied: "已复制", failed: "操作失败" },
);

interface Common {
  onClick?: (event: MouseEvent) => unknown;
  disabled?: boolean;
  /** Cannot be pressed for a moment, and keeps the focus. */
  held?: boolean;
  kind?: "primary" | "plain" | "danger" | "quiet";
  sign?: Sign;
  type?: "button" | "submit";
  pressed?: boolean;
  inner?: Ref<HTMLButtonElement>;
}

/** A press may return a promise: the button is busy until it ends, and a failure is told by `onFault`, else by a toast. */
export function Button({
  children,
  onClick,
  disabled,
  held,
  kind = "plain",
  sign,
  type = "button",
  pressed,
  title,
  onFault,
  inner,
}: Common & { children: ComponentChildren; title?: string; onFault?: (error: unknown) => void }) {
  const busy = useSignal(false);
  return (
    <button
      ref={inner}
      type={type}
      class={`button ${kind}`}
      disabled={disabled}
      aria-disabled={held || busy.value || undefined}
      aria-busy={busy.value || undefined}
      aria-pressed={pressed}
      title={title}
      onClick={(event) => void press(event, onClick, busy, onFault)}
    >
      {sign && <Icon sign={sign} size={16} />}
      <span>{children}</span>
    </button>
  );
}

export function IconButton({
  label,
  sign,
  onClick,
  disabled,
  kind = "quiet",
  pressed,
  inner,
}: Common & { label: string; sign: Sign }) {
  const busy = useSignal(false);
  return (
    <button
      ref={inner}
      type="button"
      class={`button icon-only ${kind}`}
      aria-label={label}
      title={label}
      disabled={disabled}
      aria-disabled={busy.value || undefined}
      aria-busy={busy.value || undefined}
      aria-pressed={pressed}
      onClick={(event) => void press(event, onClick, busy)}
    >
      <Icon sign={sign} />
    </button>
  );
}

/** Run what a button does, once at a time. Meanwhile it is not disabled: a disabled button loses the focus. */
async function press(
  event: MouseEvent,
  run: Common["onClick"],
  busy: { value: boolean },
  onFault: (error: unknown) => void = toastError,
): Promise<void> {
  if (busy.value) return;
  try {
    const result = run?.(event);
    if (!(result instanceof Promise)) return;
    busy.value = true;
    await result;
  } catch (error) {
    onFault(error);
  } finally {
    busy.value = false;
  }
}

/** Tell by a toast that something a person asked for has failed. */
export function toastError(error: unknown): Toast {
  if (error instanceof ApiError) return showToast(error.message, "bad", error);
  return showToast(error instanceof UserError ? error.message : words().failed, "bad");
}

export function CopyButton({
  text,
  label,
  short = true,
}: {
  text: string | (() => string | Promise<string>);
  label?: string;
  short?: boolean;
}) {
  const done = useSignal(false);
  const copy = async () => {
    done.value = await copyText(typeof text === "string" ? text : await text());
    setTimeout(() => (done.value = false), 1600);
  };
  const name = done.value ? words().copied : (label ?? words().copy);
  return short ? (
    <IconButton label={name} sign={done.value ? "check" : "copy"} onClick={copy} />
  ) : (
    <Button kind="quiet" sign={done.value ? "check" : "copy"} onClick={copy}>
      {name}
    </Button>
  );
}

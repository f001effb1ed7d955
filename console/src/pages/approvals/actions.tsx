/** The five answers. Deny comes first and has the focus; what stays allowed for longer shows its rule. And one answer to
 * all calls that wait together. */
import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { api, ApiError } from "../../lib/api";
import { now } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { joinWords } from "../../lib/language";
import { Button } from "../../ui/button";
import { Fault } from "../../ui/state";
import { AlwaysDialog } from "./always";
import { DenyNote } from "./note";
import { areHeld, isDeliberate } from "./press-guard";
import { RuleText } from "./rule-text";
import { approvalPath } from "./use-approval";
import { approvalWords as words } from "./words";
import type { Approval } from "./types";

/** Hears that an approval was answered: how, unless somebody else was faster. */
export type Settle = (id: string, effect?: "allow" | "deny") => Promise<void> | void;

interface Given {
  one: Approval;
  same: readonly Approval[];
  ready: boolean;
  settle: Settle;
  denyRef?: (node: HTMLButtonElement | null) => void;
  onFault: (error: unknown) => void;
}

/** The approvals whose cards stand on the page in full and can be allowed. */
const allowable = signal<ReadonlySet<string>>(new Set());

function useAllowable(id: string, isAllowable: boolean): void {
  useLayoutEffect(() => {
    if (!isAllowable) return;
    allowable.value = new Set(allowable.peek()).add(id);
    return () => {
      const left = new Set(allowable.peek());
      left.delete(id);
      allowable.value = left;
    };
  }, [id, isAllowable]);
}

export function Actions({ one, same, ready, settle, denyRef, onFault }: Given) {
  const t = words();
  const asking = useSignal<"" | "always" | "note">("");
  const held = areHeld.value;
  const over = one.state !== "pending" || (one.expires !== null && one.expires <= now.value / 1000);
  const closed = !ready || over;
  useAllowable(one.id, !closed);
  const send = async (effect: "allow" | "deny", body: object) => {
    const counts = await sendAnswer(() => api(`${approvalPath(one.id)}/${effect}`, { body }));
    await settle(one.id, counts ? effect : undefined);
  };
  const all = async (effect: "allow" | "deny") => {
    const ids = same.map((other) => other.id);
    await sendAnswer(() => api("/v1/approvals/bulk", { body: { ids: ids.slice(0, 100), effect } }));
    await Promise.all(ids.map(async (id) => settle(id)));
  };
  return (
    <footer class="apr-actions">
      {same.length > 1 && (
        <div class="apr-same">
          <span class="grow quiet">{t.identical(same.length)}</span>
          <Button kind="danger" held={held} onFault={onFault} onClick={guarded(() => all("deny"))}>
            {t.denyAll(same.length)}
          </Button>
          <Button held={held} disabled={closed} onFault={onFault} onClick={guarded(() => all("allow"))}>
            {t.allowAll(same.length)}
          </Button>
        </div>
      )}
      <div class="apr-main">
        <Button kind="danger" held={held} inner={denyRef} onFault={onFault} onClick={guarded(() => send("deny", {}))}>
          {t.deny}
        </Button>
        <Button
          kind="primary"
          held={held}
          disabled={closed}
          onFault={onFault}
          onClick={guarded(() => send("allow", { for: "once" }))}
        >
          {t.once}
        </Button>
      </div>
      <div class="apr-more">
        {one.chat && one.rule && (
          <Button
            kind="quiet"
            held={held}
            disabled={closed}
            onFault={onFault}
            onClick={guarded(() => send("allow", { for: "chat" }))}
          >
            {t.chat}
          </Button>
        )}
        {one.rule && (
          <Button
            kind="quiet"
            held={held}
            disabled={closed}
            onClick={guarded(() => void (asking.value = "always"))}
          >{`${t.always}…`}</Button>
        )}
        <Button kind="quiet" held={held} onClick={guarded(() => void (asking.value = "note"))}>{`${t.note}…`}</Button>
      </div>
      {ready && (
        <div class="apr-scope faint">
          {one.rule ? (
            <>
              <span>{one.chat ? t.ruleOfBoth : t.ruleOfAlways}</span>{" "}
              <RuleText rule={one.rule} tools={[{ name: one.tool, commands: one.commands }]} />
            </>
          ) : (
            t.noRule
          )}
        </div>
      )}
      {asking.value === "always" && one.rule && (
        <AlwaysDialog
          rule={one.rule}
          onClose={() => (asking.value = "")}
          onConfirm={() => send("allow", { for: "always" })}
        />
      )}
      {asking.value === "note" && (
        <DenyNote onClose={() => (asking.value = "")} onDeny={(reason) => send("deny", { reason })} />
      )}
    </footer>
  );
}

/** One answer for calls that wait together, each allowed once. It stands under their cards: who allows all has come past
 * each of them, and each is shown in full. */
export function AnswerAll({ ids, names, settle }: { ids: readonly string[]; names?: string[]; settle: Settle }) {
  const t = words();
  const fault = useSignal<Error | null>(null);
  const held = areHeld.value;
  const answer = async (effect: "allow" | "deny") => {
    fault.value = null;
    const body = effect === "allow" ? { for: "once" } : {};
    const sent = await Promise.allSettled(
      ids.map((id) => sendAnswer(() => api(`${approvalPath(id)}/${effect}`, { body }))),
    );
    for (const [at, result] of sent.entries())
      if (result.status === "fulfilled") await settle(ids[at]!, result.value ? effect : undefined);
    const failed = sent.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  };
  const failed = (error: unknown) => (fault.value = error as Error);
  return (
    <div class="apr-together" role="group" aria-label={t.together(ids.length)}>
      <p class="grow">
        <strong>{t.together(ids.length)}</strong>{" "}
        {names && (
          <span class="quiet" data-given>
            {revealHidden(joinWords(names))}
          </span>
        )}
      </p>
      <Button kind="danger" held={held} onFault={failed} onClick={guarded(() => answer("deny"))}>
        {t.denyAll(ids.length)}
      </Button>
      <Button
        held={held}
        disabled={!ids.every((id) => allowable.value.has(id))}
        onFault={failed}
        onClick={guarded(() => answer("allow"))}
      >
        {t.allowAll(ids.length)}
      </Button>
      {fault.value && <Fault title={t.failed} error={fault.value} />}
    </div>
  );
}

/** Runs what a deliberate press asks for. */
function guarded<T>(run: () => T): () => T | undefined {
  return () => (isDeliberate() ? run() : undefined);
}

/** Returns true if the answer counts. That somebody else was faster is no fault: the card will tell who. */
export async function sendAnswer(send: () => Promise<unknown>): Promise<boolean> {
  try {
    await send();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    return false;
  }
}

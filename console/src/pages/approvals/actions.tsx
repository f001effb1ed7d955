/** The five answers. Deny comes first and has the focus; what stays allowed for longer shows its rule. */
import { useSignal } from "@preact/signals";
import { api, ApiError } from "../../lib/api";
import { now } from "../../lib/clock";
import { Button } from "../../ui/button";
import { AlwaysDialog } from "./always";
import { DenyNote } from "./note";
import { areHeld, isDeliberate } from "./press-guard";
import { RuleText } from "./rule-text";
import type { Approval } from "./types";
import { approvalPath } from "./use-approval";
import { approvalWords as words } from "./words";

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

export function Actions({ one, same, ready, settle, denyRef, onFault }: Given) {
  const t = words();
  const asking = useSignal<"" | "always" | "note">("");
  const held = areHeld.value;
  const over = one.state !== "pending" || (one.expires !== null && one.expires <= now.value / 1000);
  const closed = !ready || over;
  const send = async (effect: "allow" | "deny", body: object) => {
    const counts = await sendAnswer(() => api(`${approvalPath(one.id)}/${effect}`, { body }));
    await settle(one.id, counts ? effect : undefined);
  };
  const all = async (effect: "allow" | "deny") => {
    const ids = same.map((other) => other.id);
    await sendAnswer(() => api("/v1/approvals/bulk", { body: { ids: ids.slice(0, 100), effect } }));
    await Promise.all(ids.map(async (id) => settle(id)));
  };
  const guarded =
    <T,>(run: () => T) =>
    () =>
      isDeliberate() ? run() : undefined;
  return (
    <footer class="apr-actions">
      {same.length > 1 && (
        <div class="apr-same">
          <span class="grow quiet">{t.identical(same.length)}</span>
          <Button kind="danger" held={held} onFault={onFault} onClick={guarded(() => all("deny"))}>
            {t.denyIdentical(same.length)}
          </Button>
          <Button held={held} disabled={closed} onFault={onFault} onClick={guarded(() => all("allow"))}>
            {t.allowIdentical(same.length)}
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

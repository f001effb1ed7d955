/** The five answers. Deny comes first and has the focus; what stays allowed for longer is confirmed. */
import { useSignal } from "@preact/signals";
import { api, ApiError } from "../../lib/api";
import { now } from "../../lib/clock";
import { Button } from "../../ui/button";
import { AlwaysDialog } from "./always";
import { isDeliberate } from "./press-guard";
import { DenyNote } from "./note";
import type { Approval } from "./types";
import { approvalWords as words } from "./words";

interface Given {
  one: Approval;
  same: readonly Approval[];
  ready: boolean;
  since: number;
  settle: (id: string) => Promise<void>;
  denyRef: (node: HTMLButtonElement | null) => void;
  onFault: (error: unknown) => void;
}

export function Actions({ one, same, ready, since, settle, denyRef, onFault }: Given) {
  const t = words();
  const asking = useSignal<"" | "always" | "note">("");
  const over = one.expires !== null && one.expires <= now.value / 1000;
  const send = async (effect: "allow" | "deny", body: object) => {
    await sendAnswer(() => api(`/v1/approvals/${encodeURIComponent(one.id)}/${effect}`, { body }));
    await settle(one.id);
  };
  const all = async (effect: "allow" | "deny") => {
    const ids = same.map((other) => other.id);
    await sendAnswer(() => api("/v1/approvals/bulk", { body: { ids: ids.slice(0, 100), effect } }));
    await Promise.all(ids.map(settle));
  };
  const guarded =
    <T,>(run: () => T) =>
    () =>
      isDeliberate(since) ? run() : undefined;
  return (
    <footer class="apr-actions">
      {same.length > 1 && (
        <div class="apr-same">
          <span class="grow quiet">{t.identical(same.length)}</span>
          <Button kind="danger" onFault={onFault} onClick={guarded(() => all("deny"))}>
            {t.denyIdentical(same.length)}
          </Button>
          <Button disabled={!ready || over} onFault={onFault} onClick={guarded(() => all("allow"))}>
            {t.allowIdentical(same.length)}
          </Button>
        </div>
      )}
      <div class="apr-main">
        <Button kind="danger" inner={denyRef} onFault={onFault} onClick={guarded(() => send("deny", {}))}>
          {t.deny}
        </Button>
        <Button
          kind="primary"
          disabled={!ready || over}
          onFault={onFault}
          onClick={guarded(() => send("allow", { for: "once" }))}
        >
          {t.once}
        </Button>
      </div>
      <div class="apr-more">
        {one.chat && (
          <Button
            kind="quiet"
            disabled={!ready || over || !one.rule}
            title={one.rule ? undefined : t.noRule}
            onFault={onFault}
            onClick={guarded(() => send("allow", { for: "chat" }))}
          >
            {t.chat}
          </Button>
        )}
        <Button
          kind="quiet"
          disabled={!ready || over || !one.rule}
          title={one.rule ? undefined : t.noRule}
          onClick={guarded(() => void (asking.value = "always"))}
        >{`${t.always}…`}</Button>
        <Button kind="quiet" onClick={guarded(() => void (asking.value = "note"))}>{`${t.note}…`}</Button>
      </div>
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

/** That somebody else was faster is no fault: the card will tell who. */
export async function sendAnswer(send: () => Promise<unknown>): Promise<void> {
  try {
    await send();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
  }
}

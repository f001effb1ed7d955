/** The input of a call, with secrets masked. */
import { useSignal } from "@preact/signals";
import type { CallDetail } from "toolyard-client";
import { Code, Json } from "../../ui/code";
import { Switch } from "../../ui/field";
import { activityWords as words } from "./words";

export function Input({ call }: { call: CallDetail }) {
  const t = words();
  const raw = useSignal(false);
  return (
    <div class="stack">
      <Switch label={t.raw} on={raw.value} onSwitch={(on) => (raw.value = on)} />
      {raw.value ? (
        <Code tall label={t.input} text={JSON.stringify(call.arguments) ?? ""} />
      ) : (
        <Json label={t.input} value={call.arguments} />
      )}
    </div>
  );
}

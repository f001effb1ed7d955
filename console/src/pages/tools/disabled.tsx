/** A plugin that is off: why, and the way to turn it on. */
import type { PluginRow } from "toolyard-client";
import { messageIn, type ServerMessage } from "../../lib/messages";
import { Button } from "../../ui/button";
import { MessageText } from "../../ui/message-text";
import { Notice } from "../../ui/state";
import { enablePlugin } from "./plugin-actions";
import { words } from "./words";

/** Its manifest is named .block: only renaming the file enables it. */
const BLOCKED = "plugin.blocked_manifest";

/** Why a plugin is off. The sentence of the server names a command for those who have no console. */
export function DisabledReason({ reason }: { reason: ServerMessage }) {
  const t = words();
  const own = { "plugin.off_by_default": t.offByDefault, "plugin.disabled": t.turnedOff }[reason.code ?? ""];
  return own ? <span>{own}</span> : <MessageText message={reason} />;
}

export function DisabledNotice({ plugin, reload }: { plugin: PluginRow; reload: () => void }) {
  const reason = messageIn(plugin, "reason");
  return (
    <Notice
      action={
        reason.code !== BLOCKED && (
          <Button kind="primary" sign="power" onClick={() => enablePlugin(plugin, reload)}>
            {words().enable}
          </Button>
        )
      }
    >
      <DisabledReason reason={reason} />
    </Notice>
  );
}

/** MCP servers whose tools are ours too. One that nobody has reviewed does not run. */
import { useSignal } from "@preact/signals";
import { api, ApiError } from "../../lib/api";
import { useThing } from "../../lib/resource";
import { visible } from "../../lib/visible";
import { Button } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { TextArea } from "../../ui/field";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { words } from "./words";

interface Server { name: string; state: string; reason?: string; command_line?: string[] | null; url?: string | null; tools?: string[]; fingerprint?: string }

export function Mcp() {
  const t = words();
  const servers = useThing<{ data: Server[] }>("/v1/mcp/servers", ["plugin."]);
  const adding = useSignal(false);
  if (servers.state === "fault" && !servers.value) return <Fault error={servers.error} retry={servers.reload} />;
  if (!servers.value) return <Loading rows={3} />;
  const act = async (name: string, verb: string, body: unknown = {}) => {
    await api(`/v1/mcp/servers/${encodeURIComponent(name)}${verb ? `/${verb}` : ""}`, verb ? { body } : { method: "DELETE" });
    servers.reload();
  };
  const add = <Button kind="primary" sign="plus" onClick={() => (adding.value = true)}>{t.addMcp}</Button>;
  return (
    <>
      {servers.value.data.length === 0 ? <Empty sign="plug" title={t.noMcp} action={add}>{t.noMcpText}</Empty> : <div class="row spread"><span />{add}</div>}
      <ul class="settings-checks">
        {servers.value.data.map((server) => (
          <li key={server.name} class="card stack">
            <div class="row"><StateChip state={server.state} /><strong class="grow">{server.name}</strong>
              {server.state === "needs_review" && <Button kind="primary" onClick={() => act(server.name, "allow", { fingerprint: server.fingerprint })}>{t.allow}</Button>}
              {server.state === "disabled" ? <Button onClick={() => act(server.name, "enable")}>{t.enable}</Button> : server.state !== "needs_review" && <Button onClick={() => act(server.name, "disable")}>{t.disable}</Button>}
              <Button kind="danger" sign="trash" onClick={() => act(server.name, "")}>{t.remove}</Button>
            </div>
            {server.reason && <p class="quiet">{server.reason}</p>}
            <p class="faint">{t.command}: <code>{visible(server.command_line?.join(" ") ?? server.url ?? "")}</code></p>
            {server.tools && <p class="faint">{t.tools(server.tools.length)}{server.tools.length ? `: ${server.tools.join(", ")}` : ""}</p>}
          </li>
        ))}
      </ul>
      {adding.value && <Add onClose={() => { adding.value = false; servers.reload(); }} />}
    </>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const t = words();
  const text = useSignal('{\n  "mcpServers": {\n    "time": {"command": "uvx", "args": ["mcp-server-time"]}\n  }\n}');
  const problem = useSignal("");
  const send = async () => {
    problem.value = "";
    let body: unknown;
    try {
      body = JSON.parse(text.value);
    } catch {
      problem.value = t.badJson;
      return;
    }
    try {
      await api("/v1/mcp/servers", { body });
      onClose();
    } catch (error) {
      problem.value = error instanceof ApiError ? error.message : String(error);
    }
  };
  return (
    <Dialog title={t.addMcp} onClose={onClose} footer={<><Button onClick={onClose}>{t.cancel}</Button><Button kind="primary" onClick={send}>{t.add}</Button></>}>
      <Notice>{t.noMcpText}</Notice>
      <TextArea label={t.mcpJson} mono rows={10} value={text.value} onInput={(value) => (text.value = value)} problem={problem.value} />
    </Dialog>
  );
}

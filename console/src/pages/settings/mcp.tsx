/** MCP servers whose tools are ours too. One that nobody has reviewed does not run. */
import { useSignal } from "@preact/signals";
import { Fragment, type ComponentChildren } from "preact";
import type { ServerRow } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { joinWords } from "../../lib/language";
import { useResource } from "../../lib/resource";
import { setQuery, queryParam } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextArea } from "../../ui/field";
import { Empty, ErrorText, Fault, Loading, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { PluginState } from "../tools/marks";
import { OmittedTools, McpReview } from "./mcp-review";
import { words } from "./words";

export function Mcp() {
  const t = words();
  const servers = useResource<{ data: ServerRow[]; problem_messages: { message: string }[] }>("/v1/mcp/servers", [
    "plugin.",
  ]);
  const adding = useSignal(queryParam("add") !== "");
  const reviewing = useSignal<ServerRow | null>(null);
  const fault = useSignal<ApiError | null>(null);
  if (servers.state === "fault" && !servers.value) return <Fault error={servers.error} retry={servers.reload} />;
  if (!servers.value) return <Loading rows={3} />;
  const failed = (error: unknown) => (fault.value = error as ApiError);
  const act = async (name: string, verb: string) => {
    fault.value = null;
    await api(
      `/v1/mcp/servers/${encodeURIComponent(name)}${verb ? `/${verb}` : ""}`,
      verb ? { body: {} } : { method: "DELETE" },
    );
    servers.reload();
  };
  const add = (
    <Button kind="primary" sign="plus" onClick={() => (adding.value = true)}>
      {t.addMcp}
    </Button>
  );
  const must = (server: ServerRow) => server.state === "needs_review" || server.state === "changed";
  return (
    <>
      {servers.value.data.length === 0 ? (
        <Empty sign="plug" title={t.noMcp} action={add}>
          {t.noMcpText}
        </Empty>
      ) : (
        <div class="row spread">
          <span />
          {add}
        </div>
      )}
      {servers.value.problem_messages.map((problem) => (
        <Notice key={problem.message} tone="bad">
          <MessageText message={messageIn(problem, "message")} />
        </Notice>
      ))}
      {fault.value && <Fault title={t.mcpFailed} error={fault.value} />}
      <ul class="settings-checks">
        {servers.value.data.map((server) => (
          <li key={server.name} class="card stack">
            <div class="row">
              <PluginState state={server.state} />
              <strong class="grow" data-given>
                {revealHidden(server.name)}
              </strong>
              {(must(server) || server.state === "failed") && (
                <Button kind={must(server) ? "primary" : "plain"} onClick={() => (reviewing.value = server)}>
                  {t.reviewMcp}
                </Button>
              )}
              {server.scope === "home" &&
                (server.state === "disabled" ? (
                  <Button onClick={() => act(server.name, "enable")} onFault={failed}>
                    {t.enable}
                  </Button>
                ) : (
                  !must(server) && (
                    <Button onClick={() => act(server.name, "disable")} onFault={failed}>
                      {t.disable}
                    </Button>
                  )
                ))}
              {server.scope === "home" && (
                <Button kind="danger" sign="trash" onClick={() => act(server.name, "")} onFault={failed}>
                  {t.remove}
                </Button>
              )}
            </div>
            {server.waiting_messages.length > 0 && (
              <p>
                {t.waitsForReview}
                {t.colon}
                {server.waiting_messages.map((one, n) => (
                  <Fragment key={one.message}>
                    {n > 0 && t.comma}
                    <MessageText message={messageIn(one, "message")} />
                  </Fragment>
                ))}
              </p>
            )}
            <OmittedTools tools={server.left_out_messages} />
            <p class="faint">
              {t.command}
              {t.colon}
              <code>{revealHidden(server.command_line)}</code>
            </p>
            <p class="faint">
              {t.configuredIn}
              {t.colon}
              <code>{revealHidden(server.file)}</code>
            </p>
            {server.tools.length > 0 && (
              <p class="faint">
                {t.tools(server.tools.length)}
                {t.colon}
                <span data-given>{revealHidden(joinWords(server.tools))}</span>
              </p>
            )}
          </li>
        ))}
      </ul>
      {adding.value && (
        <AddDialog
          onClose={() => {
            adding.value = false;
            setQuery({ add: "" });
            servers.reload();
          }}
        />
      )}
      {reviewing.value && (
        <McpReview
          server={reviewing.value}
          onClose={() => {
            reviewing.value = null;
            servers.reload();
          }}
        />
      )}
    </>
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const t = words();
  const text = useSignal('{\n  "mcpServers": {\n    "time": {"command": "uvx", "args": ["mcp-server-time"]}\n  }\n}');
  const problem = useSignal<ComponentChildren>(null);
  const send = async () => {
    problem.value = null;
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
      problem.value = <ErrorText error={error as ApiError} />;
    }
  };
  return (
    <Dialog
      title={t.addMcp}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" onClick={send}>
            {t.add}
          </Button>
        </>
      }
    >
      <Notice>{t.noMcpText}</Notice>
      <TextArea
        label={t.mcpJson}
        mono
        rows={10}
        value={text.value}
        onInput={(value) => (text.value = value)}
        problem={problem.value}
      />
    </Dialog>
  );
}

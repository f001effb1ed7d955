/** The review of an MCP server: its command, and its tools, for which it is started once. */
import { useSignal } from "@preact/signals";
import type { ServerReview, ServerRow } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Fault, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { words } from "./words";

export function McpReview({ server, onClose }: { server: ServerRow; onClose: () => void }) {
  const t = words();
  const looked = useSignal<ServerReview | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const path = `/v1/mcp/servers/${encodeURIComponent(server.name)}`;
  const failed = (error: unknown) => {
    fault.value = error as ApiError;
    if (fault.value.status === 409) looked.value = null;
  };
  const look = async () => {
    fault.value = null;
    looked.value = await api<ServerReview>(`${path}/look`, { body: {} });
  };
  const allow = async () => {
    await api(`${path}/allow`, { body: { fingerprint: looked.value!.fingerprint } });
    onClose();
  };
  const names = [...server.variables, ...server.env, ...server.headers];
  return (
    <Dialog
      title={t.reviewTitle(revealHidden(server.name))}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          {looked.value ? (
            <Button kind="primary" sign="approvals" onClick={allow} onFault={failed}>
              {t.allow}
            </Button>
          ) : (
            <Button kind="primary" onClick={look} onFault={failed}>
              {t.startAndInspect}
            </Button>
          )}
        </>
      }
    >
      {!looked.value && <Notice tone="warn">{t.lookText}</Notice>}
      <p class="faint">{t.command}</p>
      <pre class="settings-table" tabIndex={0} aria-label={t.command}>
        {revealHidden(server.command_line)}
      </pre>
      {names.length > 0 && (
        <p class="settings-names">
          <span class="faint">{t.itGets}</span>
          {names.map((name) => (
            <code key={name}>{revealHidden(name)}</code>
          ))}
        </p>
      )}
      {looked.value && looked.value.reach.length > 0 && (
        <>
          <h3>{t.reach}</h3>
          <ul>
            {looked.value.reach.map((line) => (
              <li key={line.text}>
                <MessageText message={messageIn(line, "text")} />
              </li>
            ))}
          </ul>
        </>
      )}
      {looked.value && looked.value.changed_messages.length > 0 && (
        <Notice tone="warn">
          <strong>{t.hasChanged}</strong>
          <ul>
            {looked.value.changed_messages.map((one) => (
              <li key={one.message}>
                <MessageText message={messageIn(one, "message")} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {looked.value && <h3>{t.tools(looked.value.tools.length)}</h3>}
      {looked.value?.tools.map((tool) => (
        <div key={tool.name} class="settings-tool">
          <strong class="mono" data-given>
            {revealHidden(tool.name)}
          </strong>
          <p class="quiet" data-given>
            {revealHidden(tool.description || tool.title)}
          </p>
          <details>
            <summary class="faint">{t.schemas}</summary>
            <pre class="settings-table" tabIndex={0} aria-label={t.schemas} data-given>
              {revealHidden(JSON.stringify({ takes: tool.schema, returns: tool.output_schema }, null, 1))}
            </pre>
          </details>
          {tool.warning_messages.map((why) => (
            <p key={why.message} class="problem">
              <MessageText message={messageIn(why, "message")} />
            </p>
          ))}
        </div>
      ))}
      {looked.value && <OmittedTools tools={looked.value.left_out_messages} />}
      {fault.value && <Fault title={t.mcpFailed} error={fault.value} />}
    </Dialog>
  );
}

/** Tools of a server that cannot be offered, and why. */
export function OmittedTools({ tools }: { tools: Record<string, { message: string }> }) {
  const t = words();
  const names = Object.keys(tools);
  if (names.length === 0) return null;
  return (
    <Notice tone="warn">
      <strong>{t.leftOut}</strong>
      <ul>
        {names.map((name) => (
          <li key={name}>
            <span data-given>{revealHidden(name)}</span>
            {t.colon}
            <MessageText message={messageIn(tools[name]!, "message")} />
          </li>
        ))}
      </ul>
    </Notice>
  );
}

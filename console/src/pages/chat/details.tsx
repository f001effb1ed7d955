/** All of a call: what it changed, what it was given, what it said. Read from the server when the card is opened. */
import type { CallDetail } from "toolyard-client";
import { hasScope } from "../../lib/api";
import { approvalLink } from "../../lib/approval-link";
import { callerName } from "../../lib/caller";
import { readableText } from "../../lib/envelope-text";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn, messageText } from "../../lib/messages";
import { useResource } from "../../lib/resource";
import { StateChip } from "../../ui/chip";
import { Code, Json } from "../../ui/code";
import { filesOf, Patch } from "../../ui/patch";
import { Fault, Loading, Notice } from "../../ui/state";
import { Undo } from "../activity/changes";
import { approvalWords } from "../approvals/words";
import type { Call } from "./model";
import { words } from "./words";

export function CallDetails({ call }: { call: Call }) {
  const t = words();
  const path = call.id && hasScope("tools") ? `/v1/calls/${encodeURIComponent(call.id)}` : null;
  const { state, value, error, reload } = useResource<CallDetail>(path, ["call."], (data) => data["id"] === call.id);
  if (path && state === "loading") return <Loading rows={2} />;
  if (state === "fault" && !value && error?.status !== 404) return <Fault error={error} retry={reload} />;
  if (!value)
    return (
      <>
        <Notice tone="info">{t.noCall}</Notice>
        {call.summary && <Code label={t.input} text={call.summary} />}
        {call.text && <Code label={t.output} text={messageText(messageIn(call, "text"))} />}
      </>
    );
  const data = { ...value.envelope?.data };
  const files = filesOf(value.envelope);
  delete data["structured_patch"];
  const output = value.envelope
    ? readableText(value.envelope)
    : messageText(messageIn(value.text ? value : call, "text"));
  return (
    <>
      {(files.length > 0 || value.undoable || value.undone) && <Undo call={value} files={files} onUndone={reload} />}
      {files.length > 0 && <Patch files={files} />}
      <Json label={t.input} value={value.arguments} />
      {output && <Code label={t.output} text={output} />}
      {Object.keys(data).length > 0 && <Json label={t.result} value={shortenMedia(data)} />}
      {value.approval && <ApprovalLine {...value.approval} />}
    </>
  );
}

/** How the call was approved, with the way to all of it. */
function ApprovalLine({ id, state, by }: NonNullable<CallDetail["approval"]>) {
  const t = approvalWords();
  return (
    <div class="row">
      <a href={approvalLink(id)}>{t.detail}</a>
      <StateChip state={state} />
      {by && <span class="quiet">{t.answeredBy(revealHidden(callerName(by)))}</span>}
    </div>
  );
}

/** Pictures in the data are shown as pictures elsewhere; here they would be a wall of letters. */
function shortenMedia(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > 2000 && value.startsWith("data:") ? `${value.slice(0, 60)}… (${value.length})` : value;
  if (Array.isArray(value)) return value.map(shortenMedia);
  return typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortenMedia(inner)]))
    : value;
}

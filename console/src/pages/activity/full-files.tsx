/** The files that a call wrote, whole, before and after it: as far as the server still has them. */
import type { CallFile, FileSide } from "toolyard-client";
import { formatBytes } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { Code } from "../../ui/code";
import { Fault, Loading } from "../../ui/state";
import { callPath } from "./types";
import { activityWords as words } from "./words";

export function FullFiles({ id }: { id: string }) {
  const t = words();
  const resource = useResource<{ data: CallFile[] }>(
    `${callPath(id)}/files`,
    ["call.undone"],
    (data) => data.id === id,
  );
  if (!resource.value)
    return resource.state === "fault" ? <Fault error={resource.error} retry={resource.reload} /> : <Loading />;
  if (!resource.value.data.length) return <p class="quiet">{t.filesNone}</p>;
  return (
    <>
      {resource.value.data.map((file) => (
        <section key={file.path} class="act-full-file" aria-label={`${t.fullFiles}: ${file.path}`}>
          <h3 class="mono" data-given>
            {revealHidden(file.path)}
          </h3>
          <Half label={t.before} side={file.before} />
          <Half label={t.after} side={file.after} />
        </section>
      ))}
    </>
  );
}

function Half({ label, side }: { label: string; side: FileSide }) {
  const t = words();
  if (side.text !== null) return <Code tall label={label} text={side.text} />;
  const size = formatBytes(side.bytes ?? 0);
  const why = {
    text: "",
    none: t.sideNone,
    binary: t.sideBinary(size),
    too_large: t.sideLarge(size),
    gone: t.sideGone,
  }[side.state];
  return (
    <div class="code">
      <div class="code-head">
        <span class="faint">{label}</span>
      </div>
      <p class="act-side-note quiet">{why}</p>
    </div>
  );
}

/** What this server is, where it keeps its state, a backup of it, and whose work the console stands on. */
import { request } from "../../lib/api";
import { useThing } from "../../lib/resource";
import { Button, CopyButton } from "../../ui/button";
import { Fault, Loading } from "../../ui/state";
import { words } from "./words";

interface Status { version: string; home: string; project: string; sandbox: string }
interface Build { vendored: Record<string, { version: string; license: string }> }

export function About() {
  const t = words();
  const status = useThing<Status>("/v1/status");
  const build = useThing<Build>("/console/build.json");
  if (status.state === "fault" && !status.value) return <Fault error={status.error} retry={status.reload} />;
  if (!status.value) return <Loading rows={3} />;
  const { version, home, project, sandbox } = status.value;
  return (
    <>
      <section class="card stack">
        <dl class="facts">
          <dt>{t.version}</dt><dd>{version}</dd>
          <dt>{t.home}</dt><dd class="row"><code>{home}</code><CopyButton text={home} /></dd>
          <dt>{t.project}</dt><dd class="row"><code>{project}</code><CopyButton text={project} /></dd>
          <dt>{t.sandbox}</dt><dd>{sandbox === "limits" ? t.limits : sandbox}</dd>
        </dl>
      </section>
      <section class="card stack">
        <h2>{t.backup}</h2><p class="quiet">{t.backupText}</p>
        <div><Button sign="download" onClick={download}>{t.backupNow}</Button></div>
      </section>
      {build.value && (
        <section class="card stack">
          <h2>{t.licences}</h2>
          <dl class="facts">{Object.entries(build.value.vendored).map(([name, one]) => [<dt key={name}>{name}</dt>, <dd key={`${name}-v`}>{one.version} · {one.license}</dd>])}</dl>
        </section>
      )}
    </>
  );
}

async function download(): Promise<void> {
  const response = await request("/v1/backup", { method: "POST", body: {} });
  const url = URL.createObjectURL(await response.blob());
  const link = Object.assign(document.createElement("a"), { href: url, download: /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "toolyard-backup" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** About the server: its version, its folders, its limits and the licences. */
import type { Status } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { CopyButton } from "../../ui/button";
import { Fault, Loading } from "../../ui/state";
import { Licenses } from "./licenses";
import { words } from "./words";

export function About() {
  const t = words();
  const status = useResource<Status>("/v1/status");
  const limits = useResource<{ limits: Record<string, number> }>("/readyz?verbose");
  if (status.state === "fault" && !status.value) return <Fault error={status.error} retry={status.reload} />;
  if (!status.value) return <Loading rows={3} />;
  const { version, home, project, confinement } = status.value;
  return (
    <>
      <section class="card stack">
        <dl class="facts">
          <dt>{t.version}</dt>
          <dd>{version}</dd>
          <dt>{t.home}</dt>
          <dd class="row">
            <code>{home}</code>
            <CopyButton text={home} />
          </dd>
          <dt>{t.project}</dt>
          <dd class="row">
            <code>{project}</code>
            <CopyButton text={project} />
          </dd>
          <dt>{t.plugins}</dt>
          <dd>{{ full: t.confinedFull, files: t.confinedFiles, none: t.confinedNone }[confinement]}</dd>
        </dl>
      </section>
      {limits.value && (
        <details class="card fold settings-limits">
          <summary>{t.limitsTitle}</summary>
          <dl class="facts">
            {Object.entries(limits.value.limits).map(([name, value]) => [
              <dt key={name}>
                <code>{name}</code>
              </dt>,
              <dd key={`${name}-v`} class="tabular">
                {value}
              </dd>,
            ])}
          </dl>
        </details>
      )}
      <Licenses />
    </>
  );
}

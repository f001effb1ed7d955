/** About the server: its version, its folders, and the third-party components of the console. */
import { useResource } from "../../lib/resource";
import { CopyButton } from "../../ui/button";
import { Fault, Loading } from "../../ui/state";
import { words } from "./words";

interface Status {
  version: string;
  home: string;
  project: string;
  confinement: "full" | "files" | "none";
}
interface Build {
  vendored: Record<string, { version: string; license: string }>;
}

export function About() {
  const t = words();
  const status = useResource<Status>("/v1/status");
  const limits = useResource<{ limits: Record<string, number> }>("/readyz?verbose");
  const build = useResource<Build>("/console/build.json");
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
      {build.value && (
        <section class="card stack">
          <h2>{t.licences}</h2>
          <dl class="facts">
            {Object.entries(build.value.vendored).map(([name, one]) => [
              <dt key={name}>{name}</dt>,
              <dd key={`${name}-v`}>
                {one.version} · {one.license}
              </dd>,
            ])}
          </dl>
        </section>
      )}
    </>
  );
}

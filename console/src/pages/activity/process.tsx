/** The process of a plugin's call: how it ran and ended. Of its environment only the names are known here. */
import { Fragment } from "preact";
import { bytes } from "../../lib/clock";
import { visible } from "../../lib/visible";
import { Code } from "../../ui/code";
import { Handle } from "../../ui/handle";
import type { Process } from "./types";
import { activityWords as words } from "./words";

export function ProcessPart({ process }: { process: Process }) {
  const t = words();
  const facts: [string, string][] = [
    [t.pid, said(process.pid)],
    [t.exit, said(process.exit_code)],
    [t.signal, said(process.signal)],
    [t.limits, process.limits_hit.join(", ")],
    [t.stdout, process.stdout_bytes === null ? "" : bytes(process.stdout_bytes)],
    [t.env, process.environment.join(", ")],
  ];
  return (
    <div class="stack">
      <dl class="facts">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd class="mono" data-given>
                {visible(value)}
              </dd>
            </Fragment>
          ))}
        {process.folder && (
          <>
            <dt>{t.folder}</dt>
            <dd>
              <Handle text={process.folder} />
            </dd>
          </>
        )}
        <dt>{t.warm}</dt>
        <dd>{process.warm ? t.yes : t.no}</dd>
      </dl>
      {process.argv.length > 0 && <Code label={t.argv} text={process.argv.join(" ")} />}
      {process.stderr && <Code label={t.stderr} text={process.stderr} />}
      {process.noise && <Code label={t.noise} text={process.noise} />}
    </div>
  );
}

function said(value: string | number | null): string {
  return value === null ? "" : String(value);
}

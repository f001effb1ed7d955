/** The process of a plugin's call: how it ran and ended. Of its environment only the names are known here. */
import { Fragment } from "preact";
import type { ProcessDetail } from "toolyard-client";
import { formatBytes } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { Code } from "../../ui/code";
import { Copyable } from "../../ui/copyable";
import { activityWords as words } from "./words";

export function ProcessPart({ process }: { process: ProcessDetail }) {
  const t = words();
  const facts: [string, string][] = [
    [t.pid, formatField(process.pid)],
    [t.exit, formatField(process.exit_code)],
    [t.signal, formatField(process.signal)],
    [t.limits, process.limits_hit.join(", ")],
    [t.stdout, process.stdout_bytes === null ? "" : formatBytes(process.stdout_bytes)],
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
                {revealHidden(value)}
              </dd>
            </Fragment>
          ))}
        {process.folder && (
          <>
            <dt>{t.folder}</dt>
            <dd>
              <Copyable text={process.folder} />
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

function formatField(value: string | number | null): string {
  return value === null ? "" : String(value);
}

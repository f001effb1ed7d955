/** What the machine offers, and the command that mends what is missing. */
import { useThing } from "../../lib/resource";
import { Button } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Fault, Loading, Notice } from "../../ui/state";
import { words } from "./words";

interface Check { name: string; level: "ok" | "warn" | "error"; message: string; fix?: string | null }

export function Doctor() {
  const t = words();
  const came = useThing<{ data: Check[] }>("/v1/doctor");
  if (came.state === "fault" && !came.value) return <Fault error={came.error} retry={came.reload} />;
  if (!came.value) return <Loading />;
  const checks = came.value.data;
  return (
    <>
      <div class="row spread"><p class="quiet grow">{t.doctorText}</p><Button sign="retry" onClick={came.reload}>{t.again}</Button></div>
      {checks.every((check) => check.level === "ok") && <Notice tone="good">{t.allGood}</Notice>}
      <ul class="card settings-checks one">
        {checks.map((check) => (
          <li key={check.name} class="stack">
            <div class="settings-check"><span><StateChip state={check.level} /></span><strong data-given>{check.name}</strong><span class="quiet" data-given>{check.message}</span></div>
            {check.fix && <Code label={t.fix} text={check.fix} />}
          </li>
        ))}
      </ul>
    </>
  );
}

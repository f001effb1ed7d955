/** The review of a VCPToolBox installation: what becomes of each part of it, and the one decision on its plugins. */
import "./style.css";
import { useSignal } from "@preact/signals";
import type { InstallationFinding, InstallationReview } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn } from "../../lib/messages";
import { useResource } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Chip, type Tone } from "../../ui/chip";
import { Code } from "../../ui/code";
import { MessageText } from "../../ui/message-text";
import { Empty, Fault, Loading } from "../../ui/state";
import { partWords, verdictWords, words } from "./words";

const PARTS = ["host", "plugin", "agent", "text", "schedule", "key", "client", "variable"] as const;
const TONES: Record<InstallationFinding["verdict"], Tone> = {
  needs: "warn",
  adapted: "info",
  taken: "good",
  left: "plain",
};
const VERDICTS = Object.keys(TONES) as InstallationFinding["verdict"][];

export default function InstallationPage() {
  const t = words();
  const loaded = useResource<InstallationReview>("/v1/installation", ["plugin."]);
  const review = loaded.value;
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <Button sign="reload" onClick={loaded.reload}>
          {t.reload}
        </Button>
      </div>
      {loaded.state === "fault" && !review && <Fault error={loaded.error} retry={loaded.reload} />}
      {!review && loaded.state === "loading" && <Loading rows={8} />}
      {review?.folder === null && (
        <Empty sign="folder" title={t.none} action={<a href="/settings">{t.settings}</a>}>
          {t.noneText}
        </Empty>
      )}
      {review && review.folder !== null && (
        <>
          <p>
            <code data-given>{review.folder}</code> {t.about}
          </p>
          <Decision review={review} put={loaded.put} reload={loaded.reload} />
          {review.install && <Code text={review.install} label={t.install} />}
          {PARTS.map((part) => (
            <Part key={part} part={part} findings={review.findings.filter((one) => one.part === part)} />
          ))}
        </>
      )}
    </div>
  );
}

/** What one yes covers, all of it visible beside the button. */
function Decision({
  review,
  put,
  reload,
}: {
  review: InstallationReview;
  put: (review: InstallationReview) => void;
  reload: () => void;
}) {
  const t = words();
  const fault = useSignal<ApiError | null>(null);
  const waiting = review.waiting;
  const allow = async () => {
    fault.value = null;
    put(await api<InstallationReview>("/v1/installation/allow", { body: { fingerprint: review.fingerprint } }));
    showToast(t.allowed);
  };
  const failed = (error: unknown) => {
    fault.value = error as ApiError;
    if (fault.value.status === 409) reload();
  };
  const settings = waiting.filter((one) => one.settings.length);
  const changed = waiting.filter((one) => one.changed.length);
  return (
    <section class="card stack" aria-label={t.decision}>
      <h2>{waiting.length ? t.waits(waiting.length) : t.decision}</h2>
      {!waiting.length && <p>{t.decided}</p>}
      {waiting.length > 0 && (
        <>
          <h3>{t.together}</h3>
          <ul class="vcp-rows vcp-reach">
            {review.reach.map((line) => (
              <li key={line.text}>
                <span>
                  <MessageText message={messageIn(line, "text")} />
                </span>
                <Who plugins={line.plugins} total={waiting.length} />
              </li>
            ))}
          </ul>
          {changed.length > 0 && (
            <>
              <h3>{t.changed}</h3>
              <ul class="vcp-rows pairs">
                {changed.map((one) => (
                  <li key={one.name}>
                    <PluginLink name={one.name} />
                    <span class="why">
                      {one.changed.map((line) => (
                        <div key={line.text}>
                          <MessageText message={messageIn(line, "text")} />
                        </div>
                      ))}
                    </span>
                  </li>
                ))}
              </ul>
            </>
          )}
          {settings.length + review.process_secrets.length > 0 && (
            <details class="fold">
              <summary>{t.settingsOf}</summary>
              <ul class="vcp-rows pairs">
                {settings.map((one) => (
                  <li key={one.name}>
                    <PluginLink name={one.name} />
                    <span class="why mono" data-given>
                      {revealHidden(one.settings.join(", "))}
                    </span>
                  </li>
                ))}
                {review.process_secrets.length > 0 && (
                  <li>
                    <span>{t.process}</span>
                    <span class="why mono" data-given>
                      {revealHidden(review.process_secrets.join(", "))}
                    </span>
                  </li>
                )}
              </ul>
            </details>
          )}
          {fault.value && (
            <Fault title={fault.value.status === 409 ? t.changedMeanwhile : undefined} error={fault.value} />
          )}
          <div>
            <Button kind="primary" sign="approvals" onClick={allow} onFault={failed}>
              {t.allow(waiting.length)}
            </Button>
          </div>
          <p class="quiet">{t.later}</p>
        </>
      )}
    </section>
  );
}

/** Which of the waiting plugins: few of them by name. */
function Who({ plugins, total }: { plugins: readonly string[]; total: number }) {
  const t = words();
  if (plugins.length > 3 || plugins.length === total)
    return <span class="quiet">{plugins.length === total ? t.all : t.plugins(plugins.length)}</span>;
  return (
    <span class="quiet" data-given>
      {revealHidden(plugins.join(", "))}
    </span>
  );
}

function Part({ part, findings }: { part: InstallationFinding["part"]; findings: readonly InstallationFinding[] }) {
  if (!findings.length) return null;
  const count = (verdict: InstallationFinding["verdict"]) => findings.filter((one) => one.verdict === verdict).length;
  const rows = [...findings].sort((a, b) => VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict));
  return (
    <details class="fold vcp-part" open={part === "plugin" || part === "host" || count("needs") > 0}>
      <summary>
        <strong>{partWords()[part]}</strong>
        {VERDICTS.filter(count).map((verdict) => (
          <Chip key={verdict} tone={TONES[verdict]}>
            {count(verdict)} {verdictWords()[verdict]}
          </Chip>
        ))}
      </summary>
      <ul class="vcp-rows" aria-label={partWords()[part]}>
        {rows.map((one, at) => (
          <Row key={at} finding={one} />
        ))}
      </ul>
    </details>
  );
}

function Row({ finding }: { finding: InstallationFinding }) {
  return (
    <li>
      {finding.part === "plugin" ? (
        <PluginLink name={finding.name} />
      ) : (
        <code data-given>{revealHidden(finding.name)}</code>
      )}
      <span>
        <Chip tone={TONES[finding.verdict]}>{verdictWords()[finding.verdict]}</Chip>
      </span>
      <span class="why quiet">
        <MessageText message={messageIn(finding, "why")} />
        {finding.waits && (
          <>
            {finding.why && " · "}
            {words().waiting}
          </>
        )}
      </span>
    </li>
  );
}

function PluginLink({ name }: { name: string }) {
  return (
    <a href={`/tools/${encodeURIComponent(name)}`} data-given>
      {revealHidden(name)}
    </a>
  );
}

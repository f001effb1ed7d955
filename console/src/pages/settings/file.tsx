/** The settings file as a text: checked as a whole, with what would change, before a byte of it is written. */
import { useSignal } from "@preact/signals";
import { api, ApiError } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { TextArea } from "../../ui/field";
import { Fault, Loading, Notice } from "../../ui/state";
import { Told } from "../../ui/told";
import { words } from "./words";

interface All {
  file: string;
  text: string;
}
interface Problem {
  message: string;
  line?: number | null;
  column?: number | null;
}
interface Checked {
  diff?: string;
  after_restart?: string[];
}

export function SettingsFile() {
  const t = words();
  const all = useResource<All>("/v1/settings");
  const draft = useSignal<string | null>(null);
  const problems = useSignal<Problem[]>([]);
  const diff = useSignal<string | null>(null);
  const fault = useSignal<ApiError | null>(null);
  if (all.state === "fault" && !all.value) return <Fault error={all.error} retry={all.reload} />;
  if (!all.value) return <Loading />;
  const text = draft.value ?? all.value.text;
  const send = async (check: boolean) => {
    problems.value = [];
    diff.value = null;
    fault.value = null;
    try {
      const response = await api<Checked>("/v1/settings", {
        method: "PUT",
        body: { text, before: all.value!.text },
        query: { check: check || null },
      });
      if (check && (draft.peek() ?? text) !== text) return; // it was changed meanwhile
      if (check) diff.value = response.diff ?? "";
      else {
        draft.value = null;
        showToast(response.after_restart?.length ? t.savedLater : t.saved);
        all.reload();
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const reported = (error.body as { problems?: Problem[] } | null)?.problems;
      if (reported?.length) problems.value = reported;
      else fault.value = error;
    }
  };
  return (
    <section class="card stack">
      <p class="quiet">{t.rawText}</p>
      <TextArea
        label={<code>{all.value.file}</code>}
        mono
        rows={18}
        value={text}
        onInput={(value) => {
          draft.value = value;
          diff.value = null;
        }}
      />
      {problems.value.length > 0 && (
        <Notice tone="bad">
          <strong>{t.problems}</strong>
          <ul>
            {problems.value.map((one, at) => (
              <li key={at}>
                {one.line ? (
                  <code>
                    {one.line}:{one.column ?? 1}
                  </code>
                ) : null}{" "}
                <Told text={one.message} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {fault.value &&
        (fault.value.status === 409 ? (
          <Notice
            tone="warn"
            action={
              <Button
                onClick={() => {
                  draft.value = null;
                  all.reload();
                }}
              >
                {t.reload}
              </Button>
            }
          >
            {t.changedOutside}
          </Notice>
        ) : (
          <Fault error={fault.value} />
        ))}
      {diff.value !== null &&
        (diff.value ? (
          <Notice tone="good">
            {t.good}
            <pre class="settings-diff">
              {diff.value.split("\n").map((line, at) => (
                <span key={at} class={line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : ""}>
                  {line}
                  {"\n"}
                </span>
              ))}
            </pre>
          </Notice>
        ) : (
          <Notice>{t.noChange}</Notice>
        ))}
      <div class="row">
        <Button onClick={() => send(true)}>{t.check}</Button>
        <Button kind="primary" disabled={draft.value === null || !diff.value} onClick={() => send(false)}>
          {t.save}
        </Button>
        {draft.value !== null && (
          <Button
            kind="quiet"
            onClick={() => {
              draft.value = null;
              diff.value = null;
              problems.value = [];
            }}
          >
            {t.cancel}
          </Button>
        )}
      </div>
    </section>
  );
}

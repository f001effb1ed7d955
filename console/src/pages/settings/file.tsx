/** The settings file as a text: checked as a whole, with what would change, before a byte of it is written. */
import { useSignal } from "@preact/signals";
import type { SettingProblem, SettingsChangeResult } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { draftOf, peekDraft, setDraft } from "../../lib/drafts";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { TextArea } from "../../ui/field";
import { Fault, Loading, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import type { TabProps } from "./types";
import { words } from "./words";

/** The key of the unsaved text. */
const KEPT = "settings.raw.text";

export function SettingsFile({ all }: TabProps) {
  const t = words();
  const draft = draftOf<string>(KEPT) ?? null;
  const problems = useSignal<SettingProblem[]>([]);
  const diff = useSignal<string | null>(null);
  const fault = useSignal<ApiError | null>(null);
  if (all.state === "fault" && !all.value) return <Fault error={all.error} retry={all.reload} />;
  if (!all.value) return <Loading />;
  const text = draft ?? all.value.text;
  const send = async (check: boolean) => {
    problems.value = [];
    diff.value = null;
    fault.value = null;
    try {
      const response = await api<SettingsChangeResult>("/v1/settings", {
        method: "PUT",
        body: { text, before: all.value!.text },
        query: { check: check || null },
      });
      if (check && (peekDraft<string>(KEPT) ?? text) !== text) return; // it was changed meanwhile
      if (check) diff.value = response.diff ?? "";
      else {
        setDraft(KEPT, undefined);
        showToast(response.after_restart?.length ? t.savedLater : t.saved);
        all.reload();
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const reported = (error.body as { problems?: SettingProblem[] } | null)?.problems;
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
          setDraft(KEPT, value === all.value!.text ? undefined : value);
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
                <MessageText message={messageIn(one, "message")} />
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
                  setDraft(KEPT, undefined);
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
        <Button kind="primary" disabled={draft === null || !diff.value} onClick={() => send(false)}>
          {t.save}
        </Button>
        {draft !== null && (
          <Button
            kind="quiet"
            onClick={() => {
              setDraft(KEPT, undefined);
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

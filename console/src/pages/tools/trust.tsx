/** The review of a plugin: what it would run, whether that is allowed, and allowing it, always with all details
 * visible. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { AccessChoice, AccessOptionRow, PluginDetail, PluginReview } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { formatDuration } from "../../lib/clock";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { messageIn } from "../../lib/messages";
import { Button, CopyButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select, Switch } from "../../ui/field";
import { Copyable } from "../../ui/copyable";
import { Icon, type Sign } from "../../ui/icon";
import { MessageText } from "../../ui/message-text";
import { Fault, Notice } from "../../ui/state";
import { pluginBase, pluginPath } from "./plugin-actions";
import { ReviewFiles } from "./review-files";
import { titleOf } from "./translation";
import { pluginWords } from "./words-plugin";

export function Trust({ plugin, reload }: { plugin: PluginDetail; reload: () => void }) {
  const t = pluginWords();
  const asking = useSignal(false);
  const review = plugin.review;
  const hasChanged = plugin.state === "changed";
  const must = plugin.state === "needs_review" || hasChanged;
  if (!review) return plugin.state === "broken" ? <Notice tone="warn">{t.noReview}</Notice> : null;
  const button = (
    <Button kind="primary" sign="approvals" onClick={() => (asking.value = true)}>
      {t.review}
    </Button>
  );
  const files = <ReviewFiles base={pluginBase(plugin)} folder={plugin.folder} />;
  return (
    <section class="card stack" aria-label={t.trust}>
      <h2>{t.trust}</h2>
      {must ? (
        <Notice tone="warn" action={button}>
          {hasChanged ? t.hasChanged : t.mustReview}
        </Notice>
      ) : review.claims_read && !review.read_confirmed ? (
        <Notice action={button}>{t.readUnconfirmed}</Notice>
      ) : plugin.state === "ready" || plugin.state === "missing_config" ? (
        <p class="quiet">{t.allowed}</p>
      ) : null}
      {hasChanged && files}
      <ReviewFacts review={review} />
      {hasChanged ? null : must ? files : <FoldedFiles>{files}</FoldedFiles>}
      {!must && (
        <div>
          <Button sign="approvals" onClick={() => (asking.value = true)}>
            {t.reviewAgain}
          </Button>
        </div>
      )}
      {asking.value && <Allow plugin={plugin} review={review} onClose={() => (asking.value = false)} reload={reload} />}
    </section>
  );
}

/** The whole of what would run. Nothing of it is cut. */
export function ReviewFacts({ review }: { review: PluginReview }) {
  const t = pluginWords();
  // The list of files shows their changes.
  const changes = review.changed
    .map((line) => messageIn(line, "text"))
    .filter((line) => !line.code?.startsWith("review.file_"));
  return (
    <>
      <div class="tools-command">
        <span class="faint">
          {t.commandLine}
          {review.shell && ` · ${t.byShell}`}
        </span>
        <pre tabIndex={0} aria-label={t.commandLine}>
          {revealHidden(review.command_line)}
        </pre>
      </div>
      <dl class="facts">
        <dt>{t.reach}</dt>
        <dd>
          <AccessReach option={chosenOption(review)} env={review.env} />
        </dd>
        <dt>{t.folders}</dt>
        <dd class="tools-paths">
          {review.folders.map((folder) => (
            <Copyable key={folder} text={folder} />
          ))}
        </dd>
        {review.detached_s != null && (
          <>
            <dt>{t.background}</dt>
            <dd>{review.detached ? t.backgroundYes(formatDuration(review.detached_s)) : t.backgroundNo}</dd>
          </>
        )}
        {changes.length > 0 && (
          <>
            <dt>{t.changedFiles}</dt>
            <dd class="tools-paths">
              {changes.map((line) => (
                <span key={line.text}>
                  <MessageText message={line} />
                </span>
              ))}
            </dd>
          </>
        )}
        <dt>{t.fingerprint}</dt>
        <dd class="row tools-print">
          <code>{review.fingerprint}</code>
          <CopyButton text={review.fingerprint} />
        </dd>
      </dl>
    </>
  );
}

/** The decision that is in force, with what it means. */
function chosenOption(review: PluginReview, choice: string = review.access): AccessOptionRow | undefined {
  return review.access_options.find((one) => one.choice === choice);
}

/** What a plugin may reach under one decision, how far that is enforced here, and why not further. */
function AccessReach({ option, env }: { option: AccessOptionRow | undefined; env: readonly string[] }) {
  const t = pluginWords();
  if (!option) return null;
  return (
    <ul class="tools-reach">
      {option.reach.map((line) => (
        <li key={line.text}>
          <Icon sign={signOf(messageIn(line, "text").code ?? "")} size={16} />
          <MessageText message={messageIn(line, "text")} />
        </li>
      ))}
      <li>
        <Icon sign="key" size={16} />
        <span>
          {env.length ? t.getsEnv : t.noEnv}{" "}
          <span class="tools-names">
            {env.map((name) => (
              <code key={name} data-given>
                {revealHidden(name)}
              </code>
            ))}
          </span>
        </span>
      </li>
      <li class="faint">
        <Icon sign="approvals" size={16} />
        <span>
          {{ full: t.levelFull, files: t.levelFiles, none: t.levelNone }[option.confinement]}
          {option.missing.map((line) => (
            <span key={line.text}>
              {" · "}
              <MessageText message={messageIn(line, "text")} />
            </span>
          ))}
        </span>
      </li>
    </ul>
  );
}

/** The icon of what a line of the access is about, by the code of its message. */
function signOf(code: string): Sign {
  if (code.startsWith("access.network")) return "network";
  if (code.startsWith("access.project")) return "folder";
  return code.startsWith("access.unix") ? "plug" : code.startsWith("access.everything") ? "warning" : "file";
}

function FoldedFiles({ children }: { children: ComponentChildren }) {
  const open = useSignal(false);
  return (
    <details class="fold" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>{pluginWords().files}</summary>
      {open.value && children}
    </details>
  );
}

/** The decisions on its access from which the owner chooses. */
export function AccessSelect({
  review,
  access,
  onChoose,
}: {
  review: PluginReview;
  access: AccessChoice;
  onChoose: (choice: AccessChoice) => void;
}) {
  const t = pluginWords();
  const choices = {
    strict: t.accessStrict,
    declared: t.accessDeclared,
    "read-project": t.accessReadProject,
    installation: t.accessInstallation,
    wide: t.accessWide,
    unconfined: t.accessUnconfined,
  };
  return (
    <Select
      label={t.access}
      value={access}
      options={review.access_options.map((one) => ({ value: one.choice, name: choices[one.choice] }))}
      onInput={(choice) => onChoose(choice as AccessChoice)}
    />
  );
}

function Allow({
  plugin,
  review,
  onClose,
  reload,
}: {
  plugin: PluginDetail;
  review: PluginReview;
  onClose: () => void;
  reload: () => void;
}) {
  const t = pluginWords();
  const fault = useSignal<ApiError | null>(null);
  const detached = useSignal(review.detached ?? false);
  const reads = useSignal(review.read_confirmed);
  const access = useSignal(review.access);
  const hasChanged = plugin.state === "changed";
  const files = <ReviewFiles base={pluginBase(plugin)} folder={plugin.folder} />;
  const allow = async () => {
    await api(pluginPath(plugin, "/allow"), {
      body: {
        fingerprint: review.fingerprint,
        confirm_read: reads.value,
        access: access.value,
        ...(review.detached_s != null ? { detached: detached.value } : {}),
      },
    });
    showToast(t.allowedNow(revealHidden(titleOf(plugin))));
    onClose();
    reload();
  };
  const failed = (error: unknown) => {
    fault.value = error as ApiError;
    if (fault.value.status === 409) reload();
  };
  return (
    <Dialog
      title={t.allowTitle(revealHidden(titleOf(plugin)))}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" sign="approvals" onClick={allow} onFault={failed}>
            {t.allow}
          </Button>
        </>
      }
    >
      <p>{t.allowText}</p>
      {hasChanged && files}
      <ReviewFacts review={{ ...review, access: access.value }} />
      <AccessSelect review={review} access={access.value} onChoose={(choice) => (access.value = choice)} />
      {review.detached_s != null && (
        <Switch
          label={t.allowBackground}
          help={t.allowBackgroundHelp(formatDuration(review.detached_s))}
          on={detached.value}
          onSwitch={(on) => (detached.value = on)}
        />
      )}
      {!hasChanged && files}
      {review.claims_read && (
        <Switch label={t.confirmRead} help={t.confirmReadHelp} on={reads.value} onSwitch={(on) => (reads.value = on)} />
      )}
      {fault.value && <Fault title={fault.value.status === 409 ? t.changedMeanwhile : undefined} error={fault.value} />}
    </Dialog>
  );
}

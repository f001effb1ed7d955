/** A result as people read it, each part once: how much of it there is, its text, pictures and sounds, its tasks, what
 * changed in files, and the data that its text does not have. */
import "./outcome/outcome.css";
import { useMemo } from "preact/hooks";
import type { Envelope, TaskDetail } from "toolyard-client";
import { toFailure } from "../lib/api";
import { fromUri, type Media } from "./outcome/call-media";
import { formatBytes } from "../lib/clock";
import { failureAdvice, failureIn, resultText } from "../lib/envelope-text";
import { lazyPage } from "../lib/lazy-page";
import { messageIn } from "../lib/messages";
import { useResource } from "../lib/resource";
import { revealHidden } from "../lib/hidden-characters";
import { toText } from "../lib/text";
import { StateChip } from "./chip";
import { Code } from "./code";
import { Icon } from "./icon";
import { MessageText } from "./message-text";
import { DataView, Facts } from "./outcome/data-view";
import { MediaPart } from "./outcome/media-part";
import { splitOutcome, type OutcomeParts } from "./outcome/parts";
import { outcomeWords as words } from "./outcome/words";
import { filesOf, Patch } from "./patch";
import { ErrorText, Notice } from "./state";

const FullOutput = lazyPage<{ path: string }>(() =>
  import("./outcome/full-output").then((module) => ({ default: module.FullOutput })),
);

interface Cut {
  kept_bytes?: number;
  original_bytes?: number;
  full_output_path?: string | null;
}
const ABOUT_CUTS = ["truncation", "cut", "preview"];

/** `isErrorShown` and `isPatchShown` say that the page shows the error and the changes itself. */
export function Outcome({
  envelope,
  media,
  isErrorShown = false,
  isPatchShown = false,
}: {
  envelope: Envelope;
  media: readonly Media[];
  isErrorShown?: boolean;
  isPatchShown?: boolean;
}) {
  const t = words();
  const data = envelope.data ?? {};
  const advice = envelope.error ? failureAdvice(envelope) : null;
  const cut = data.truncation as Cut | undefined;
  const fullOutputPath = (envelope.context?.full_text_path as string | undefined) ?? cut?.full_output_path;
  const patches = useMemo(() => filesOf(envelope), [envelope]);
  const tasks = Array.isArray(data.tasks) ? data.tasks.flatMap((one) => (isTask(one) ? [one.id] : [])) : [];
  const failed = failedItems(data.failed_items);
  const shown = new Set([
    "structured_patch",
    ...ABOUT_CUTS,
    ...(failed.length ? ["failed_items"] : []),
    ...(tasks.length ? ["tasks"] : []),
    ...(patches.length ? ["files"] : []),
  ]);
  const parts = splitOutcome(envelope, shown, media.length > 0);
  const facts = Object.keys(parts.facts).length;
  const preview = toText(data.preview);
  return (
    <div class="stack">
      {cut && (
        <Notice tone="warn">{t.cut(formatBytes(cut.kept_bytes ?? 0), formatBytes(cut.original_bytes ?? 0))}</Notice>
      )}
      {typeof data.cut === "string" && <Notice tone="warn">{t.cutData}</Notice>}
      {envelope.error && !isErrorShown && (
        <Notice tone="bad">
          <strong class="mono" data-given>
            {envelope.error.code}
          </strong>
          <ErrorText error={toFailure(failureIn(envelope.error, envelope.context))} />
          {advice?.more && (
            <p class="quiet" data-given>
              {revealHidden(advice.more)}
            </p>
          )}
          {advice?.hint.text && (
            <p class="quiet">
              <MessageText message={advice.hint} />
            </p>
          )}
        </Notice>
      )}
      {!envelope.error && envelope.text && (
        <div class="outcome-text">
          <MessageText message={resultText(envelope)} />
        </div>
      )}
      {failed.length > 0 && (
        <Notice tone="warn">
          <strong>{t.failedItems(failed.length)}</strong>
          <ul>
            {failed.map((one, n) => (
              <li key={n}>
                <span class="mono" data-given>
                  {revealHidden(one.item)} {one.code}
                </span>{" "}
                <MessageText message={messageIn(one, "message")} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {media.map((one, n) => (
        <MediaPart key={n} media={one} name={one.name || t.mediaOf(n + 1)} />
      ))}
      {tasks.map((id) => (
        <TaskLine key={id} id={id} />
      ))}
      {patches.length > 0 && !isPatchShown && <Patch files={patches} />}
      {parts.content && <Code text={parts.content} label={t.content} />}
      {preview && !envelope.text.includes(preview.trim()) && <Code text={preview} label={t.content} />}
      {fullOutputPath && <FullOutput path={fullOutputPath} />}
      {Object.entries(parts.data).map(([name, value]) => (
        <DataView key={name} name={name} value={value} />
      ))}
      {facts > 0 && (
        <details class="fold" open={!envelope.text && !parts.content && !Object.keys(parts.data).length}>
          <summary>{t.facts(facts)}</summary>
          <Facts facts={parts.facts} />
        </details>
      )}
      {!envelope.text && !media.length && !patches.length && !preview && isEmpty(parts) && (
        <p class="quiet">{t.emptyResult}</p>
      )}
    </div>
  );
}

function isEmpty(parts: OutcomeParts): boolean {
  return !parts.content && !Object.keys(parts.data).length && !Object.keys(parts.facts).length;
}

interface FailedItem {
  item: string;
  code: string;
  message: string;
}

/** The items of a batch or a search that failed, as the envelope lists them. */
function failedItems(value: unknown): FailedItem[] {
  return Array.isArray(value)
    ? value
        .filter((one: unknown) => typeof one === "object" && one !== null && "item" in one && "message" in one)
        .map((one) => one as unknown as FailedItem)
    : [];
}

function isTask(value: unknown): value is { id: string } {
  return typeof (value as { id?: unknown } | null)?.id === "string";
}

/** What a plugin sends at the end of a task, as far as it is shown here. */
interface TaskOutcome {
  message?: string;
  content?: { image_url?: { url?: string } }[];
}

/** A task that goes on behind: its state lives, and its words come when it has ended. */
function TaskLine({ id }: { id: string }) {
  const task = useResource<TaskDetail>(`/v1/tasks/${encodeURIComponent(id)}`, ["task."], (data) => data.id === id);
  const result = task.value?.result as TaskOutcome | null | undefined;
  const message = result?.message;
  const media = (Array.isArray(result?.content) ? result.content : []).flatMap((part) =>
    fromUri(part.image_url?.url ?? ""),
  );
  return (
    <div class="outcome-task">
      <div class="row">
        <Icon sign="tasks" size={16} />
        <a href={`/tasks?task=${encodeURIComponent(id)}`}>
          {words().task}{" "}
          <span class="mono" data-given>
            {id.slice(0, 13)}…
          </span>
        </a>
        {task.value && <StateChip state={task.value.state} />}
      </div>
      {message && (
        <p class="quiet" data-given>
          {revealHidden(message)}
        </p>
      )}
      {media.map((one, n) => (
        <MediaPart key={n} media={one} name={words().mediaOf(n + 1)} />
      ))}
    </div>
  );
}

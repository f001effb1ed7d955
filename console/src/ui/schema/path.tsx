/** A path inside the project. The folder button lets one walk through its folders; nothing of that is a call. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ProjectFolder } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { useEvent } from "../../lib/use-event";
import { IconButton } from "../button";
import { Field } from "../field";
import { Icon } from "../icon";
import { MessageText } from "../message-text";
import type { ServerMessage } from "../../lib/messages";
import { describeField, ForeignText, type FieldProps } from "./simple";
import { schemaWords } from "./words";

export function PathInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const isOpen = useSignal(false);
  const { help, hint } = describeField(schema);
  const text = typeof value === "string" ? value : "";
  return (
    <div
      class="schema-path"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen.value) return;
        event.stopPropagation();
        isOpen.value = false;
      }}
    >
      <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
        {(ids) => (
          <div class="schema-row">
            <input
              {...ids}
              data-given
              type="text"
              class="mono"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              placeholder={hint}
              value={text}
              onInput={(event) => onValue(event.currentTarget.value || undefined)}
            />
            <IconButton
              label={t.browse(name)}
              sign="folder"
              kind="plain"
              pressed={isOpen.value}
              onClick={() => (isOpen.value = !isOpen.value)}
            />
          </div>
        )}
      </Field>
      {isOpen.value && (
        <FolderView
          start={text}
          onChoose={(path) => {
            onValue(path);
            isOpen.value = false;
          }}
        />
      )}
    </div>
  );
}

/** A folder of the project: the way to it, its folders to walk into, its files to choose. */
function FolderView({ start, onChoose }: { start: string; onChoose: (path: string) => void }) {
  const t = schemaWords();
  const listing = useSignal<ProjectFolder | null>(null);
  const problem = useSignal<ServerMessage | null>(null);
  const list = useEvent(async (path: string, nearest: boolean) => {
    try {
      listing.value = await api<ProjectFolder>("/v1/project/folder", { query: { path, nearest } });
      problem.value = null;
    } catch (error) {
      problem.value = error instanceof ApiError ? error.serverMessage : { text: String(error) };
    }
  });
  // What is typed may be a folder, a file in one, not there yet, or outside.
  // eslint-disable-next-line react-hooks/exhaustive-deps -- it begins where the field was when it was opened
  useEffect(() => void list(start || ".", true).then(() => (listing.peek() ? undefined : list(".", false))), [list]);
  const shown = listing.value;
  if (!shown && !problem.value) return null;
  const steps = shown && shown.path !== "." ? shown.path.split("/") : [];
  return (
    <div class="schema-files">
      {shown && (
        <div class="schema-files-head">
          <nav class="grow" aria-label={t.folders}>
            <ol>
              {["", ...steps].map((step, n) => (
                <li key={n}>
                  {n === steps.length ? (
                    <b aria-current="true" data-given={n > 0 || undefined}>
                      {step || t.project}
                    </b>
                  ) : (
                    <button
                      type="button"
                      data-given={n > 0 || undefined}
                      onClick={() => void list(steps.slice(0, n).join("/") || ".", false)}
                    >
                      {step || t.project}
                    </button>
                  )}
                </li>
              ))}
            </ol>
          </nav>
          <button type="button" onClick={() => onChoose(shown.path)}>
            {t.here}
          </button>
        </div>
      )}
      {problem.value && (
        <p class="problem" role="alert">
          <MessageText message={problem.value} />
        </p>
      )}
      {shown && !shown.entries.length && <p class="faint">{t.noFiles}</p>}
      <ul>
        {shown?.entries.map((entry) => (
          <li key={entry.path}>
            <button
              type="button"
              onClick={() => (entry.type === "folder" ? void list(entry.path, false) : onChoose(entry.path))}
            >
              <Icon sign={entry.type === "folder" ? "folder" : entry.type === "link" ? "link" : "file"} size={15} />
              <span class="cut grow" data-given title={entry.path}>
                {entry.name}
              </span>
              {entry.type === "folder" && <Icon sign="right" size={14} />}
            </button>
          </li>
        ))}
      </ul>
      {shown?.truncated && <p class="faint">{t.moreFiles(shown.entries.length)}</p>}
    </div>
  );
}

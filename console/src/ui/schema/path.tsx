/** A path inside the project. The folder button lists what is there, by the LS tool, and only when it is pressed. */
import { useSignal } from "@preact/signals";
import { api } from "../../lib/api";
import { IconButton, toastError } from "../button";
import { Field } from "../field";
import { Icon } from "../icon";
import { describeField, ForeignText, type FieldProps } from "./simple";
import { schemaWords } from "./words";

interface Entry {
  path: string;
  type: string;
}
interface Listing {
  folder: string;
  entries: Entry[];
  problem: string;
}

export function PathInput({ name, schema, value, onValue, required, problem }: FieldProps) {
  const t = schemaWords();
  const listing = useSignal<Listing | null>(null);
  const { help, hint } = describeField(schema);
  const text = typeof value === "string" ? value : "";
  const list = async (folder: string) => {
    const envelope = await api<{ status: string; text: string; data: { entries?: Entry[] } }>("/v1/tools/LS", {
      body: { path: folder, limit: 200 },
    });
    listing.value = {
      folder,
      entries: envelope.data.entries ?? [],
      problem: envelope.status === "error" ? envelope.text : "",
    };
  };
  const toggle = async () => {
    if (listing.value) listing.value = null;
    else await list(text.includes("/") ? parentOf(text) : ".");
  };
  const choose = (entry: Entry) => {
    if (entry.type === "dir" || entry.type === "directory" || entry.type === "folder")
      return void list(entry.path).catch(toastError);
    onValue(entry.path);
    listing.value = null;
  };
  return (
    <div class="schema-path">
      <Field label={<ForeignText text={name} />} help={help} problem={problem} required={required}>
        {(ids) => (
          <div class="schema-path-row">
            <input
              {...ids}
              data-given
              type="text"
              class="mono"
              autocomplete="off"
              spellcheck={false}
              placeholder={hint}
              value={text}
              onInput={(event) => onValue(event.currentTarget.value || undefined)}
            />
            <IconButton
              label={t.browse(name)}
              sign="folder"
              kind="plain"
              pressed={listing.value !== null}
              onClick={toggle}
            />
          </div>
        )}
      </Field>
      {listing.value && (
        <div class="schema-files">
          <div class="schema-files-head">
            {listing.value.folder !== "." && (
              <button type="button" onClick={() => void list(parentOf(listing.value!.folder)).catch(toastError)}>
                <Icon sign="left" size={15} />
                {t.up}
              </button>
            )}
            <span class="mono cut grow" data-given title={listing.value.folder}>
              {listing.value.folder}
            </span>
            <button
              type="button"
              onClick={() => {
                onValue(listing.value!.folder);
                listing.value = null;
              }}
            >
              {t.here}
            </button>
          </div>
          {listing.value.problem && (
            <p class="problem" data-given>
              {listing.value.problem}
            </p>
          )}
          {!listing.value.entries.length && !listing.value.problem && <p class="faint">{t.noFiles}</p>}
          <ul>
            {listing.value.entries.map((entry) => (
              <li key={entry.path}>
                <button type="button" onClick={() => choose(entry)}>
                  <Icon sign={entry.type === "file" ? "file" : "folder"} size={15} />
                  <span class="cut" data-given title={entry.path}>
                    {entry.path.split("/").pop()}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function parentOf(path: string): string {
  return path.replace(/\/+$/, "").split("/").slice(0, -1).join("/") || ".";
}

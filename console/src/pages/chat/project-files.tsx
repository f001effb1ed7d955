/** A picker for files of the project: the last changed at first, then what matches the words of a search. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { withQuery } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { useEvent } from "../../lib/use-event";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Search } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Fault, Loading } from "../../ui/state";
import { composeWords } from "./words-compose";

const PAUSE_MS = 150;
const LIMIT = 100;

export function ProjectFiles({
  chosen,
  onChoose,
  onClose,
}: {
  chosen: readonly string[];
  onChoose: (path: string) => void;
  onClose: () => void;
}) {
  const t = composeWords();
  const text = useSignal("");
  const search = useSignal("");
  useEffect(() => {
    const timer = setTimeout(() => (search.value = text.value.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [search, text.value]);
  const entered = useSignal(false); // Enter means the best match, which may still be on its way
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    // Not where that would open a keyboard over the list.
    if (matchMedia("(pointer: fine)").matches) form.current?.querySelector("input")?.focus();
  }, []);
  const { state, value, error, reload } = useResource<{ data: { path: string }[]; truncated: boolean }>(
    withQuery("/v1/project/files", { search: search.value, limit: LIMIT }),
  );
  const write = (words: string) => {
    text.value = words;
    entered.value = false;
  };
  const chooseFirst = useEvent(() => {
    entered.value = false;
    const first = value?.data.find(({ path }) => !chosen.includes(path));
    if (first) onChoose(first.path);
  });
  useEffect(() => {
    if (entered.value && state === "ready") chooseFirst();
  }, [chooseFirst, entered.value, state]);
  return (
    <Dialog
      title={t.attachProject}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          {t.done}
        </Button>
      }
    >
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          search.value = text.value.trim();
          entered.value = true;
        }}
      >
        <Search label={t.findFile} value={text.value} onInput={write} />
      </form>
      <div class="chat-project" aria-busy={state === "loading"}>
        {state === "loading" && <Loading rows={5} />}
        {state === "fault" && <Fault error={error} retry={reload} />}
        {value && !value.data.length && <p class="faint">{t.noFiles}</p>}
        {value && value.data.length > 0 && (
          <ul>
            {value.data.map(({ path }) => (
              <ProjectFile key={path} path={path} attached={chosen.includes(path)} onChoose={onChoose} />
            ))}
          </ul>
        )}
        {value?.truncated && <p class="faint">{t.moreFiles}</p>}
      </div>
    </Dialog>
  );
}

function ProjectFile({
  path,
  attached,
  onChoose,
}: {
  path: string;
  attached: boolean;
  onChoose: (path: string) => void;
}) {
  const t = composeWords();
  const folder = path.split("/").slice(0, -1).join("/");
  return (
    <li>
      <button type="button" title={path} data-given disabled={attached} onClick={() => onChoose(path)}>
        <Icon sign={attached ? "chosen" : "file"} size={16} />
        <span class="chat-file-name grow">
          <bdi class="cut">{path.split("/").pop()}</bdi>
          {folder && <bdi class="faint cut">{folder}</bdi>}
        </span>
        {attached && <span class="faint">{t.attached}</span>}
      </button>
    </li>
  );
}

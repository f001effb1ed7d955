/** The prompts, variables and assistants in files, names that nothing fills, and a trial of a system message. */
import "./style.css";
import { useSignal } from "@preact/signals";
import type { FilledText, PromptList, PromptRow } from "toolyard-client";
import { api } from "../../lib/api";
import { messageIn } from "../../lib/messages";
import { useResource } from "../../lib/resource";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Code } from "../../ui/code";
import { TextArea } from "../../ui/field";
import { MessageText } from "../../ui/message-text";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { kindWords, words } from "./words";

export default function PromptsPage() {
  const t = words();
  const prompts = useResource<PromptList>("/v1/prompts");
  const list = prompts.value;
  return (
    <div class="page">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <Button sign="reload" onClick={prompts.reload}>
          {t.reload}
        </Button>
      </div>
      <p>{t.about}</p>
      {prompts.state === "fault" && !list && <Fault error={prompts.error} retry={prompts.reload} />}
      {!list && prompts.state === "loading" && <Loading rows={6} />}
      {list && (
        <>
          <Places list={list} />
          <Warnings list={list} />
          {list.data.length ? <Rows rows={list.data} /> : <Empty title={t.none}>{t.noneText}</Empty>}
          <Trial />
        </>
      )}
    </div>
  );
}

function Places({ list }: { list: PromptList }) {
  const t = words();
  return (
    <p class="quiet">
      {t.folders}{" "}
      {list.folders.map((folder) => (
        <span key={folder}>
          <code data-given>{folder}</code>{" "}
        </span>
      ))}
      {list.installation !== null && (
        <>
          {t.installation} <code data-given>{list.installation}</code>
        </>
      )}
    </p>
  );
}

function Warnings({ list }: { list: PromptList }) {
  const t = words();
  return (
    <>
      {list.unfilled.length > 0 && (
        <Notice tone="warn">
          <strong>{t.unfilled}</strong>
          <ul>
            {list.unfilled.map((one) => (
              <li key={one.name}>
                <code data-given>{`{{${one.name}}}`}</code> · {t.requests(one.requests)}
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {list.problems.length > 0 && (
        <Notice tone="warn">
          <strong>{t.problems}</strong>
          <ul>
            {list.problems.map((one, at) => (
              <li key={at}>
                <code data-given>{one.place}</code>: <MessageText message={messageIn(one, "message")} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  );
}

function Rows({ rows }: { rows: readonly PromptRow[] }) {
  const t = words();
  return (
    <ul class="prompt-rows" aria-label={t.title}>
      {rows.map((row, at) => (
        <li key={at}>
          <div>
            <code data-given>{`{{${row.name}}}`}</code> {kindWords()[row.kind]}{" "}
            {row.model !== null && (
              <Chip tone="info">{row.model ? <span data-given>{row.model}</span> : t.assistant}</Chip>
            )}
          </div>
          {row.description && <div data-given>{row.description}</div>}
          <div class="quiet">
            <span data-given>{row.place}</span> · {t.characters(row.characters)}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Trial() {
  const t = words();
  const text = useSignal("");
  const filled = useSignal<FilledText | null>(null);
  const fill = async () => {
    filled.value = await api<FilledText>("/v1/prompts/fill", { method: "POST", body: { text: text.value } });
  };
  return (
    <section class="card stack" aria-label={t.trial}>
      <h2>{t.trial}</h2>
      <TextArea label={t.text} value={text.value} onInput={(value) => (text.value = value)} mono />
      <div>
        <Button kind="primary" disabled={!text.value.trim()} onClick={fill}>
          {t.fill}
        </Button>
      </div>
      {filled.value && (
        <>
          <p class="quiet">
            {t.result} · {t.characters(filled.value.characters)}
            {filled.value.lists_tools && ` · ${t.lists}`}
          </p>
          <Code text={filled.value.text} label={t.result} />
        </>
      )}
    </section>
  );
}

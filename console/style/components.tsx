/** Every component of `src/ui`, with the states that it has. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Envelope } from "toolyard-client";
import { ApiError } from "../src/lib/api";
import { formatAbsolute, formatBytes, formatDuration } from "../src/lib/clock";
import { handleCallEvent } from "../src/lib/progress";
import { Button, CopyButton, IconButton } from "../src/ui/button";
import { CallProgress } from "../src/ui/call-progress";
import { Chip, STATES, StateChip, type Tone } from "../src/ui/chip";
import { Code, Json } from "../src/ui/code";
import { Copyable } from "../src/ui/copyable";
import { Dialog } from "../src/ui/dialog";
import { Search, Select, Switch, TextArea, TextField } from "../src/ui/field";
import { Icon, SIGN_NAMES } from "../src/ui/icon";
import { MediaView } from "../src/ui/media";
import { MessageText } from "../src/ui/message-text";
import { Outcome } from "../src/ui/outcome";
import { Patch } from "../src/ui/patch";
import { Rendered } from "../src/ui/rendered";
import { SchemaForm, type Schema, type Values } from "../src/ui/schema-form";
import { Empty, Fault, Loading, Notice } from "../src/ui/state";
import { Tabs } from "../src/ui/tabs";
import { Ago, Countdown, Elapsed } from "../src/ui/time";
import { VirtualGrid } from "../src/ui/virtual-grid";
import { VirtualList } from "../src/ui/virtual-list";
import { signMeanings } from "./signs";
import { words } from "./words";

const COLOURS = [
  ...["bg", "surface", "sunken", "line", "line-strong", "ink", "ink-2", "ink-3", "accent", "accent-soft"],
  ...["accent-text", "good", "good-soft", "warn", "warn-soft", "bad", "bad-soft", "info", "info-soft", "add", "del"],
];
const TONES: readonly Tone[] = ["good", "bad", "warn", "info", "plain"];
const PICTURE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAGAAAAAwCAIAAABhdOiYAAAAVklEQVR42u3QQQkAAAgEsGtkIIsbxwb+hcESLNXDIQoECRIkSJAgQYIQJEiQIEGCBAlCkCBBggQJEiQIQYIECRIkSJAgQQgSJEiQIEGCBCFIkCBBgn5YOYPlaWsWzBAAAAAASUVORK5CYII=";
const SCHEMA: Schema = {
  type: "object",
  required: ["path"],
  properties: {
    path: { type: "string", description: "src/main.py" },
    limit: { type: "integer", minimum: 1, maximum: 100, default: 20 },
    mode: { enum: ["fast", "exact"] },
    deep: { type: "boolean", default: false },
  },
};
const SUCCESS: Envelope = {
  status: "success",
  text: "Read 2 of 2 lines of notes/plan.md.",
  data: { content: "# Plan\n- one", lines: 2, entries: [{ name: "a", size: 4 }] },
  stats: {},
  context: { cwd: "/", params_input: {} },
};
const FAILURE: Envelope = {
  ...SUCCESS,
  status: "error",
  text: "notes/plan.md does not exist. List the folder.",
  data: {},
  error: { code: "NOT_FOUND", message: "notes/plan.md does not exist." },
};
const FILE = {
  path: "notes/plan.md",
  operation: "update",
  hunks: [
    { oldStart: 1, oldLines: 3, newStart: 1, newLines: 4, lines: [" # Plan", "-- one", "+- first", "+- second", " "] },
  ],
};
const HTML = `<h2>Plan</h2><p>A <strong>reply</strong> with <code>code</code> and a <a href="https://example.org/">link</a>.</p>
<ul><li>one</li><li>two</li></ul><blockquote><p>quoted</p></blockquote>
<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>`;
const FAULT = new ApiError("The file does not exist.", 404, "not_found", "req_0123456789");

handleCallEvent({ type: "call.progress", data: { id: "call_1", done: 0.4, text: "one\ntwo" } } as never);

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Components() {
  const t = words();
  return (
    <main id="main" class="style-page">
      <h1>{t.title}</h1>
      <Looks />
      <Buttons />
      <Part title={t.states}>
        <div class="row">
          {TONES.map((tone) => (
            <Chip key={tone} tone={tone}>
              {tone}
            </Chip>
          ))}
        </div>
        <div class="row">
          {STATES.map((state) => (
            <StateChip key={state} state={state} />
          ))}
        </div>
      </Part>
      <Fields />
      <Notices />
      <Values />
      <Long />
      <Dialogs />
    </main>
  );
}

function Looks() {
  const t = words();
  const meanings = signMeanings();
  return (
    <>
      <Part title={t.colours}>
        <ul class="style-colours">
          {COLOURS.map((name) => (
            <li key={name}>
              <i style={{ background: `var(--${name})` }} />
              {name}
            </li>
          ))}
        </ul>
      </Part>
      <Part title={t.type}>
        <p style={{ fontSize: "var(--text-xl)", fontWeight: 650 }}>{t.heading}</p>
        <p style={{ fontSize: "var(--text-l)", fontWeight: 620 }}>{t.section}</p>
        <h3>{t.part}</h3>
        <p>
          {t.text} <a href="#main">{t.open}</a>
        </p>
        <p class="quiet">{t.quiet}</p>
        <p class="faint">{t.faint}</p>
        <p class="mono">src/main.py</p>
        <p>
          <kbd>Ctrl K</kbd>
        </p>
      </Part>
      <Part title={t.signs}>
        <ul class="style-signs">
          {SIGN_NAMES.map((sign) => (
            <li key={sign}>
              <Icon sign={sign} size={22} />
              <span class="mono">{sign}</span>
              <span class="faint">{meanings[sign]}</span>
            </li>
          ))}
        </ul>
      </Part>
    </>
  );
}

function Buttons() {
  const t = words();
  return (
    <Part title={t.buttons}>
      <div class="row">
        <Button kind="primary" sign="play">
          {t.primary}
        </Button>
        <Button sign="edit">{t.plain}</Button>
        <Button kind="danger" sign="trash">
          {t.danger}
        </Button>
        <Button kind="quiet">{t.off}</Button>
        <Button disabled>{t.off}</Button>
        <Button pressed>{t.pressed}</Button>
      </div>
      <div class="row">
        <IconButton label={t.plain} sign="edit" />
        <IconButton label={t.danger} sign="trash" kind="danger" />
        <IconButton label={t.pressed} sign="star" pressed />
        <IconButton label={t.off} sign="pause" disabled />
        <CopyButton text="x" />
        <CopyButton text="x" short={false} />
      </div>
    </Part>
  );
}

function Fields() {
  const t = words();
  const text = useSignal("");
  const on = useSignal(true);
  const tab = useSignal<"first" | "second" | "third">("first");
  const value = useSignal<Values>({ path: "src" });
  const set = (given: string) => (text.value = given);
  const onSwitch = (given: boolean) => (on.value = given);
  return (
    <>
      <Part title={t.fields}>
        <TextField label={t.name} help={t.nameHelp} value={text.value} onInput={set} required />
        <TextField label={t.name} problem={t.problem} value={text.value} onInput={set} />
        <Select label={t.kind} value="1" onInput={set} options={[{ value: "1", name: t.choice }]} />
        <TextArea label={t.note} rows={2} value={text.value} onInput={set} />
        <Switch label={t.enabled} help={t.nameHelp} on={on.value} onSwitch={onSwitch} />
        <Switch label={t.enabled} on={!on.value} onSwitch={(given) => onSwitch(!given)} />
        <Switch label={t.off} on={false} disabled onSwitch={onSwitch} />
        <Search label={t.search} value={text.value} onInput={set} />
      </Part>
      <Part title={t.tabs}>
        <Tabs
          label={t.tabs}
          open={tab.value}
          onOpen={(id) => (tab.value = id)}
          tabs={[
            { id: "first", name: t.first, count: 3 },
            { id: "second", name: t.second },
            { id: "third", name: t.third },
          ]}
        />
      </Part>
      <Part title={t.form}>
        <SchemaForm
          schema={SCHEMA}
          value={value.value}
          onValue={(given) => (value.value = given)}
          browse={false}
          fold={false}
        />
      </Part>
    </>
  );
}

function Notices() {
  const t = words();
  return (
    <Part title={t.notices}>
      <Notice>{t.info}</Notice>
      <Notice tone="warn" action={<Button>{t.plain}</Button>}>
        {t.warn}
      </Notice>
      <Notice tone="bad">{t.bad}</Notice>
      <Notice tone="good">{t.good}</Notice>
      <Fault error={FAULT} retry={() => undefined} />
      <Empty sign="activity" title={t.empty} action={<Button kind="primary">{t.primary}</Button>}>
        {t.emptyText}
      </Empty>
      <Loading rows={2} />
      <div class="toasts">
        <div class="toast good">{t.saved}</div>
        <div class="toast bad">
          {t.failed}
          <IconButton label={t.close} sign="close" />
        </div>
      </div>
    </Part>
  );
}

function Values() {
  const t = words();
  const now = Date.now() / 1000;
  const message = {
    text: "Python 3.11.2",
    code: "system.python",
    params: { python_version: "3.11.2", executable: "python3" },
  };
  return (
    <>
      <Part title={t.times}>
        <div class="row">
          <Ago at={now - 7200} />
          <Elapsed from={now - 95} to={now} />
          <Countdown to={now + 3900} />
          <span>{formatAbsolute(1_790_000_000, "Asia/Shanghai")}</span>
          <span>{formatDuration(0.034)}</span>
          <span>{formatBytes(1_234_567)}</span>
          <span>{t.row(1)}</span>
          <span>{t.row(1234)}</span>
          <span>
            <MessageText message={message} />
          </span>
        </div>
      </Part>
      <Part title={t.codes}>
        <Code label={t.output} text={"ls -l\ntotal 4"} />
        <Json label="JSON" value={{ path: "src", limit: 20, deep: false, none: null }} />
        <Copyable text="call_0123456789abcdef" />
      </Part>
      <Part title={t.changes}>
        <Patch files={[FILE]} />
      </Part>
      <Part title={t.outcome}>
        <Outcome envelope={SUCCESS} media={[]} />
        <Outcome envelope={FAILURE} media={[]} />
      </Part>
      <Part title={t.rendered}>
        <Rendered html={HTML} />
      </Part>
      <Part title={t.progress}>
        <CallProgress id="call_1" />
      </Part>
      <Part title={t.picture}>
        <div>
          <MediaView uri={PICTURE} label={t.picture} />
        </div>
      </Part>
    </>
  );
}

function Long() {
  const t = words();
  const rows = Array.from({ length: 500 }, (_, at) => at + 1);
  return (
    <Part title={t.lists}>
      <div class="style-list">
        <VirtualList
          rows={rows}
          height={44}
          label={t.lists}
          keyOf={String}
          draw={(n) => <a href="#main">{t.row(n)}</a>}
        />
      </div>
      <VirtualGrid
        class="style-cards"
        whole
        entries={rows.slice(0, 4)}
        draw={(n) => (
          <li key={n} class="card">
            {t.row(n)}
          </li>
        )}
      />
    </Part>
  );
}

function Dialogs() {
  const t = words();
  const open = useSignal<"" | "dialog" | "panel">("");
  const close = () => (open.value = "");
  return (
    <Part title={t.dialogs}>
      <div class="row">
        <Button onClick={() => void (open.value = "dialog")}>{t.dialog}</Button>
        <Button onClick={() => void (open.value = "panel")}>{t.panel}</Button>
      </div>
      {open.value && (
        <Dialog
          title={open.value === "panel" ? t.panel : t.dialog}
          side={open.value === "panel"}
          onClose={close}
          footer={
            <Button kind="primary" onClick={close}>
              {t.close}
            </Button>
          }
        >
          <p>{t.text}</p>
        </Dialog>
      )}
    </Part>
  );
}

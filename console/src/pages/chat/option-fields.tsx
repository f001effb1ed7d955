/** The fields of chat options: instructions, tools, mode and replies; the same for a chat and for an assistant. */
import { useSignal } from "@preact/signals";
import type { Mode, ReasoningEffort, ReplyForm } from "toolyard-client";
import { hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { Search, Select, TextArea, TextField } from "../../ui/field";
import { Fault, Loading } from "../../ui/state";
import { modeOf, type Settings } from "./model";
import { EFFORTS, parseMaxTokens, parseTemperature } from "./reply-options";
import { words } from "./words";
import { composeWords } from "./words-compose";

interface Tool {
  name: string;
  description?: string;
}
type Change = (change: Partial<Settings>) => void;

export function OptionFields({ settings, onChange }: { settings: Settings; onChange: Change }) {
  const t = words();
  const { instructions, tools } = settings;
  const way = Array.isArray(tools) ? "some" : tools;
  const ways = [
    ["all", t.toolsAll],
    ["some", t.toolsSome],
    ["none", t.toolsNone],
  ] as const;
  return (
    <>
      <TextArea
        label={t.instructions}
        help={t.instructionsHelp}
        value={instructions}
        rows={5}
        onInput={(value) => onChange({ instructions: value })}
      />
      <fieldset class="chat-choices">
        <legend>{t.tools}</legend>
        <div class="row">
          {ways.map(([id, name]) => (
            <label key={id} class="chat-choice-row">
              <input
                type="radio"
                name="tools"
                checked={way === id}
                onChange={() => onChange({ tools: id === "some" ? [] : id })}
              />
              {name}
            </label>
          ))}
        </div>
        {way === "some" && <p class="faint">{t.toolsHelp}</p>}
        {Array.isArray(tools) && hasScope("tools") && (
          <ToolChoice chosen={tools} onChoose={(names) => onChange({ tools: names })} />
        )}
      </fieldset>
      {tools !== "none" && <Modes chosen={modeOf(settings)} onChoose={(mode) => onChange({ mode })} />}
      <ReplyFields settings={settings} onChange={onChange} />
    </>
  );
}

function ReplyFields({ settings, onChange }: { settings: Settings; onChange: Change }) {
  const t = composeWords();
  const temperature = useSignal(settings.temperature?.toString() ?? "");
  const maxTokens = useSignal(settings.maxTokens?.toString() ?? "");
  const names: Record<ReasoningEffort, string> = {
    none: t.effortNone,
    minimal: t.effortMinimal,
    low: t.effortLow,
    medium: t.effortMedium,
    high: t.effortHigh,
    xhigh: t.effortXhigh,
  };
  return (
    <fieldset class="chat-choices">
      <legend>{t.reply}</legend>
      <div class="chat-reply-fields">
        <TextField
          label={t.temperature}
          help={t.temperatureHelp}
          problem={parseTemperature(temperature.value) === undefined && t.badTemperature}
          placeholder={t.providerDefault}
          autocomplete="off"
          value={temperature.value}
          onInput={(text) => {
            temperature.value = text;
            const value = parseTemperature(text);
            if (value !== undefined) onChange({ temperature: value });
          }}
        />
        <TextField
          label={t.maxTokens}
          help={t.maxTokensHelp}
          problem={parseMaxTokens(maxTokens.value) === undefined && t.badMaxTokens}
          placeholder={t.providerDefault}
          autocomplete="off"
          value={maxTokens.value}
          onInput={(text) => {
            maxTokens.value = text;
            const value = parseMaxTokens(text);
            if (value !== undefined) onChange({ maxTokens: value });
          }}
        />
        <Select
          label={t.effort}
          help={t.effortHelp}
          value={settings.effort ?? ""}
          options={[{ value: "", name: t.providerDefault }, ...EFFORTS.map((value) => ({ value, name: names[value] }))]}
          onInput={(value) => onChange({ effort: (value || null) as ReasoningEffort | null })}
        />
        <Select
          label={t.form}
          help={t.formHelp}
          value={settings.reply}
          options={[
            { value: "text", name: t.formText },
            { value: "json", name: t.formJson },
          ]}
          onInput={(value) => onChange({ reply: value as ReplyForm })}
        />
      </div>
    </fieldset>
  );
}

function Modes({ chosen, onChoose }: { chosen: Mode; onChoose: (mode: Mode) => void }) {
  const t = words();
  const trusted = hasScope("approve");
  const modes = [
    ["ask", t.modeAsk, t.modeAskHelp],
    ["auto-safe", t.modeSafe, trusted ? t.modeSafeHelp : t.modeSafeNot],
    ["read-only", t.readOnly, t.readOnlyHelp],
  ] as const;
  return (
    <fieldset class="chat-choices">
      <legend>{t.mode}</legend>
      {modes.map(([id, name, help]) => {
        const closed = id === "auto-safe" && !trusted;
        return (
          <label key={id} class={`chat-choice-row chat-mode${closed ? " closed" : ""}`}>
            <input
              type="radio"
              name="mode"
              aria-label={name}
              aria-describedby={`mode-${id}`}
              disabled={closed}
              checked={chosen === id}
              onChange={() => onChoose(id)}
            />
            <span>
              {name}
              <small id={`mode-${id}`} class="faint">
                {help}
              </small>
            </span>
          </label>
        );
      })}
    </fieldset>
  );
}

function ToolChoice({ chosen, onChoose }: { chosen: readonly string[]; onChoose: (names: string[]) => void }) {
  const t = words();
  const search = useSignal("");
  const { state, value, error, reload } = useResource<{ data: Tool[] }>("/v1/tool-summaries", ["plugin."]);
  if (state === "loading") return <Loading rows={3} />;
  if (!value) return <Fault error={error} retry={reload} />;
  const matching = value.data.filter((tool) => tool.name.toLowerCase().includes(search.value.toLowerCase()));
  return (
    <>
      <Search label={t.tools} value={search.value} onInput={(text) => (search.value = text)} />
      <div class="chat-choice">
        {matching.map((tool) => (
          <label key={tool.name} class="chat-choice-row">
            <input
              type="checkbox"
              checked={chosen.includes(tool.name)}
              onChange={(event) =>
                onChoose(
                  event.currentTarget.checked ? [...chosen, tool.name] : chosen.filter((name) => name !== tool.name),
                )
              }
            />
            <span class="cut" title={tool.name} data-given>
              {tool.name}
            </span>
          </label>
        ))}
      </div>
    </>
  );
}

/** The options of a chat: its instructions, its tools, and what they may do without approval. */
import { useSignal } from "@preact/signals";
import { hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Search, TextArea } from "../../ui/field";
import { Fault, Loading } from "../../ui/state";
import { modeOf, type Mode, type Settings } from "./model";
import type { Conversation } from "./conversation";
import { words } from "./words";

interface Tool {
  name: string;
  description?: string;
}

export function Options({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const t = words();
  const { instructions, tools } = conversation.settings.value;
  const set = (change: Partial<Settings>) =>
    (conversation.settings.value = { ...conversation.settings.peek(), ...change });
  const close = () => {
    void conversation.save();
    onClose();
  };
  const way = Array.isArray(tools) ? "some" : tools;
  const ways = [
    ["all", t.toolsAll],
    ["some", t.toolsSome],
    ["none", t.toolsNone],
  ] as const;
  return (
    <Dialog
      title={t.optionsTitle}
      onClose={close}
      footer={
        <Button kind="primary" onClick={close}>
          {t.done}
        </Button>
      }
    >
      <TextArea
        label={t.instructions}
        help={t.instructionsHelp}
        value={instructions}
        rows={5}
        onInput={(value) => set({ instructions: value })}
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
                onChange={() => set({ tools: id === "some" ? [] : id })}
              />
              {name}
            </label>
          ))}
        </div>
        <p class="faint">{t.toolsHelp}</p>
        {Array.isArray(tools) && hasScope("tools") && (
          <Choice chosen={tools} onChoose={(names) => set({ tools: names })} />
        )}
      </fieldset>
      {tools !== "none" && <Modes chosen={modeOf(conversation.settings.value)} onChoose={(mode) => set({ mode })} />}
    </Dialog>
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

function Choice({ chosen, onChoose }: { chosen: readonly string[]; onChoose: (names: string[]) => void }) {
  const t = words();
  const search = useSignal("");
  const { state, value, error, reload } = useResource<{ data: Tool[] }>("/v1/tools", ["plugin."]);
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

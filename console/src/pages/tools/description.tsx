/** Exactly the text that a model gets about a tool, with its length, remarks, and nothing hidden. */
import { useSignal } from "@preact/signals";
import type { PluginDetail, ToolRow } from "toolyard-client";
import { hasHidden } from "../../lib/hidden-characters";
import { Code, Json } from "../../ui/code";
import { Notice } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { ProblemList } from "./problems";
import { pluginWords } from "./words-plugin";

export function Description({ tool, plugin }: { tool: ToolRow | null; plugin: PluginDetail | null }) {
  const t = pluginWords();
  const tab = useSignal<"function" | "prompt">("function");
  const texts = { function: (tool?.native ?? plugin?.native)?.description ?? "", prompt: plugin?.prompt_text ?? "" };
  const open = texts.prompt ? tab.value : "function";
  const text = texts[open];
  const name = open === "prompt" ? `{{VCP${plugin?.name ?? ""}}}` : t.modelReads;
  return (
    <div class="stack">
      {hasHidden(text) ? (
        <Notice tone="warn">{t.hidden}</Notice>
      ) : (
        (tool?.hidden_characters || plugin?.hidden_characters) && <Notice tone="warn">{t.hiddenOut}</Notice>
      )}
      {texts.prompt && (
        <Tabs
          label={t.modelReads}
          tabs={[
            { id: "function", name: t.asFunction },
            { id: "prompt", name: t.asPrompt },
          ]}
          open={open}
          onOpen={(id) => (tab.value = id)}
        />
      )}
      <Code text={text} label={`${name} · ${t.characters([...text].length)}`} tall />
      {plugin &&
        (plugin.lint.length ? (
          <section class="stack">
            <h2>{t.lint}</h2>
            <ProblemList problems={plugin.lint} />
          </section>
        ) : (
          <p class="quiet">{t.clean}</p>
        ))}
      {tool && (
        <details class="fold">
          <summary>{t.parameters}</summary>
          <Json value={tool.native.parameters} label={t.parameters} />
        </details>
      )}
    </div>
  );
}

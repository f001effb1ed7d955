/** Assistants: chat options under a name, kept on the server for each key. */
import type { AssistantRow } from "toolyard-client";
import { api } from "../../lib/api";
import type { Conversation } from "./conversation";
import { SETTINGS, type Settings } from "./model";
import { usualModel } from "./models";

/** An assistant while it is edited; without an id it is new. */
export interface AssistantDraft {
  id: string;
  name: string;
  model: string;
  settings: Settings;
}

export function newDraft(settings: Settings = SETTINGS, model = ""): AssistantDraft {
  return { id: "", name: "", model, settings };
}

export function toDraft(stored: AssistantRow): AssistantDraft {
  return {
    id: stored.id,
    name: stored.name,
    model: stored.model,
    settings: {
      instructions: stored.instructions,
      tools: stored.tools === null ? "all" : stored.tools.length ? stored.tools : "none",
      mode: stored.mode,
      assistant: stored.id,
      temperature: stored.temperature,
      maxTokens: stored.max_tokens,
      effort: stored.reasoning_effort,
      reply: stored.reply,
    },
  };
}

export function toBody({ name, model, settings }: AssistantDraft): Omit<AssistantRow, "id" | "created" | "updated"> {
  const { tools } = settings;
  return {
    name: name.trim(),
    instructions: settings.instructions,
    model,
    tools: tools === "all" ? null : tools === "none" ? [] : tools,
    mode: settings.mode,
    temperature: settings.temperature,
    max_tokens: settings.maxTokens,
    reasoning_effort: settings.effort,
    reply: settings.reply,
  };
}

export function saveAssistant(draft: AssistantDraft): Promise<AssistantRow> {
  const body = toBody(draft);
  return draft.id
    ? api(`/v1/assistants/${encodeURIComponent(draft.id)}`, { method: "PUT", body })
    : api("/v1/assistants", { body });
}

export async function deleteAssistant(id: string): Promise<void> {
  await api(`/v1/assistants/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** Gives a new chat the options of an assistant; without one, the usual ones. */
export function applyAssistant(conversation: Conversation, stored: AssistantRow | null): void {
  const draft = stored ? toDraft(stored) : newDraft();
  conversation.settings.value = draft.settings;
  conversation.model.value = draft.model || usualModel();
}

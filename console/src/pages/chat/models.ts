/** The models of the server, loaded once for all that need them. */
import { signal } from "@preact/signals";
import type { Model } from "toolyard-client";
import { api } from "../../lib/api";
import { isForChat } from "../providers/model-kind";

export const models = signal<readonly Model[]>([]);
/** Providers that do not answer. */
export const unavailable = signal<readonly string[]>([]);
/** False until the server has listed its models. */
export const modelsKnown = signal(false);
export const modelsFailed = signal(false);
/** The built-in guide, for a server without a provider. */
export const TOUR = "tour";
const LAST = "toolyard.model";
/** The names under which providers tell the context window of a model. */
const WINDOWS = ["context_length", "context_window", "max_model_len", "max_context_length", "loaded_context_length"];

export async function loadModels(): Promise<void> {
  try {
    const list = await api<{ data: Model[]; unavailable: string[] }>("/v1/models");
    models.value = list.data;
    unavailable.value = list.unavailable;
    modelsKnown.value = true;
    modelsFailed.value = false;
  } catch {
    modelsFailed.value = true;
  }
}

/** The models to choose from: those that can chat. */
export function chatModels(): string[] {
  return models.value.filter(isForChat).map((model) => model.id);
}

/** The model for a new chat: the last used one, else the first that is no guide. The guide answers only where there is no
 * provider: one that does not answer now is no reason to talk to somebody else. */
export function usualModel(): string {
  const ids = models.value.map((model) => model.id);
  const last = localStorage.getItem(LAST) ?? "";
  if (last && last !== TOUR && (ids.includes(last) || unavailable.value.length)) return last;
  const first = [...chatModels(), ...ids].find((id) => id !== TOUR);
  return first ?? (unavailable.value.length ? "" : (ids[0] ?? ""));
}

/** True if the provider of a model does not answer. */
export function isUnavailable(id: string): boolean {
  const model = models.value.find((one) => one.id === id);
  return model ? model.available === false : unavailable.value.length > 0;
}

export function rememberModel(id: string): void {
  localStorage.setItem(LAST, id);
}

export function contextWindow(id: string): number | null {
  const model = models.value.find((one) => one.id === id);
  const value = model && WINDOWS.map((field) => model[field]).find((one) => typeof one === "number" && one > 0);
  return typeof value === "number" ? value : null;
}

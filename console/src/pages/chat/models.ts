/** The models of the server, loaded once for all that need them. */
import { signal } from "@preact/signals";
import { api } from "../../lib/api";

interface Model {
  id: string;
  [field: string]: unknown;
}

export const models = signal<readonly Model[]>([]);
export const modelsFailed = signal(false);
const LAST = "toolyard.model";
/** The names under which providers tell the context window of a model. */
const WINDOWS = ["context_length", "context_window", "max_model_len", "max_context_length", "loaded_context_length"];

export async function loadModels(): Promise<void> {
  try {
    models.value = (await api<{ data: Model[] }>("/v1/models")).data;
    modelsFailed.value = false;
  } catch {
    modelsFailed.value = true;
  }
}

/** The model for a new chat: the last used one, else the first that is no guide. */
export function usualModel(): string {
  const ids = models.value.map((model) => model.id);
  const last = localStorage.getItem(LAST) ?? "";
  return ids.includes(last) ? last : (ids.find((id) => id !== "tour") ?? ids[0] ?? "");
}

export function rememberModel(id: string): void {
  localStorage.setItem(LAST, id);
}

export function contextWindow(id: string): number | null {
  const model = models.value.find((one) => one.id === id);
  const value = model && WINDOWS.map((field) => model[field]).find((one) => typeof one === "number" && one > 0);
  return typeof value === "number" ? value : null;
}

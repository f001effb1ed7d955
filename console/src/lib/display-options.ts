/** Display options of this browser: whether diagrams are rendered, and whether remote images can be loaded. */
import { signal } from "@preact/signals";

export type Diagrams = "drawn" | "source";
export type RemoteImages = "offered" | "never";
const DIAGRAMS = "toolyard.diagrams";
const ELSEWHERE = "toolyard.elsewhere";

export const diagrams = signal<Diagrams>(localStorage.getItem(DIAGRAMS) === "source" ? "source" : "drawn");
export const remoteImages = signal<RemoteImages>(localStorage.getItem(ELSEWHERE) === "never" ? "never" : "offered");

export function setDiagrams(chosen: Diagrams): void {
  diagrams.value = chosen;
  localStorage.setItem(DIAGRAMS, chosen);
}

export function setRemoteImages(chosen: RemoteImages): void {
  remoteImages.value = chosen;
  localStorage.setItem(ELSEWHERE, chosen);
}

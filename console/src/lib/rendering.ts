/** What this browser does with replies by itself: whether diagrams are drawn, and whether pictures elsewhere are offered. */
import { signal } from "@preact/signals";

export type Diagrams = "drawn" | "source";
export type Elsewhere = "offered" | "never";
const DIAGRAMS = "toolyard.diagrams";
const ELSEWHERE = "toolyard.elsewhere";

export const diagrams = signal<Diagrams>(localStorage.getItem(DIAGRAMS) === "source" ? "source" : "drawn");
export const elsewhere = signal<Elsewhere>(localStorage.getItem(ELSEWHERE) === "never" ? "never" : "offered");

export function showDiagrams(chosen: Diagrams): void {
  diagrams.value = chosen;
  localStorage.setItem(DIAGRAMS, chosen);
}

export function showElsewhere(chosen: Elsewhere): void {
  elsewhere.value = chosen;
  localStorage.setItem(ELSEWHERE, chosen);
}

/** The data of the first steps, the props of each step, and how far somebody came. */
import type { SettingRow, Status } from "toolyard-client";

export interface StepProps {
  status: Status;
  settings: readonly SettingRow[];
  next: () => void;
  skip: () => void;
  back?: () => void;
}

/** How far somebody came, to go on there later. */
export interface Kept {
  /** The folder and the home: the same address may belong to another server later. */
  place: string;
  at: number;
  /** The steps that were done, rather than passed by. */
  done: readonly string[];
}
const STORED = "toolyard.welcome";

export function readKept(place: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(STORED) ?? "") as Kept;
    if (kept.place === place && Array.isArray(kept.done)) return kept;
  } catch {
    // Nothing is stored yet, or not by us.
  }
  return { place, at: 1, done: [] };
}

export function keep(kept: Kept): void {
  localStorage.setItem(STORED, JSON.stringify(kept));
}

export function dropKept(): void {
  localStorage.removeItem(STORED);
}

export function placeOf({ project, home_option }: Status): string {
  return project + home_option;
}

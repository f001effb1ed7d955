/** The data of the first steps, and the props of each step. */
import type { Setting } from "../providers/provider";

export interface Status {
  project: string;
  first_run: boolean;
  version: string;
  time_zone: string;
  confinement: "full" | "files" | "none";
  /** What a command needs to reach this home, with a space before it; empty for the default home. */
  home_option: string;
}
export interface Settings {
  settings: Setting[];
}
export interface StepProps {
  status: Status;
  settings: readonly Setting[];
  next: () => void;
  skip: () => void;
  back?: () => void;
}

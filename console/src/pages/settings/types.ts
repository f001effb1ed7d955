/** The settings as the server lists them. */
import type { Resource } from "../../lib/resource";
import type { Kind } from "./setting-text";

export interface Setting {
  name: string;
  value: unknown;
  default: unknown;
  source: "default" | "file" | "env" | "host.env";
  variable: string;
  secret: boolean;
  live: boolean;
  /** False: it was changed, and waits for a restart. */
  holds: boolean;
  description: string;
  kind: Kind;
  choices: string[] | null;
  group: string;
}
export interface AllSettings {
  file: string;
  text: string;
  restart_command: string;
  settings: Setting[];
}
export interface TabProps {
  all: Resource<AllSettings>;
}

/** Tools, plugins and calls as the server describes them (docs/http.md). */
import type { Envelope } from "../../lib/envelope";
import type { Schema, Values } from "../../ui/schema-form";
import type { Process } from "../activity/types";
import type { CommandForm } from "./commands";
import type { Translated } from "./translation";

export type Risk = "read" | "write" | "execute" | "network";
/** A tool as a chat offers it to a model. */
export interface NativeTool {
  name: string;
  description: string;
  parameters: Schema;
}
/** A tool as lists show it: the first lines of its texts, and no schemas. */
export interface ToolSummary extends Translated {
  description: string;
  version: string;
  risk: Risk;
  kind: string;
  plugin: string | null;
  server: string | null;
  commands: string[];
  hidden_characters: boolean;
}
export interface Tool extends ToolSummary {
  native: NativeTool;
  parameters: Schema;
  forms: CommandForm[];
  synonyms: Readonly<Record<string, string>>;
  examples: { command: string; arguments: Values }[];
  timeout_s: number | null;
}
export interface Problem {
  message: string;
  fix: string;
  file: string;
  line: number;
  column: number;
  warning: boolean;
}
export interface Plugin extends Translated {
  version: string;
  kind: string;
  state: string;
  reason: string;
  folder: string;
  origin: string;
  hidden_by: string | null;
  hides: string[];
  tools: string[];
  commands: string[];
  problems: Problem[];
}
export type AccessChoice = "strict" | "declared" | "wide" | "unconfined";
export interface AccessOption {
  choice: AccessChoice;
  reach: { text: string }[];
  confinement: "full" | "files" | "none";
  missing: { text: string }[];
}
export interface Review {
  command_line: string;
  argv: string[];
  shell: boolean;
  detached?: boolean;
  detached_s?: number | null;
  env: string[];
  files: Record<string, string>;
  folders: string[];
  access: AccessChoice;
  access_options: AccessOption[];
  fingerprint: string;
  changed: { text: string }[];
  claims_read: boolean;
  read_confirmed: boolean;
}
export interface Setting {
  key: string;
  type: string;
  description: string;
  /** The description by language. */
  translations: Readonly<Record<string, string>>;
  required: boolean;
  secret: boolean;
  value: string | null;
  set: boolean;
  source: "plugin" | "host" | "default" | "missing";
  changed: number | null;
}
export interface PluginDetail extends Plugin {
  manifest: string;
  description: string;
  description_length: number;
  native: NativeTool | null;
  prompt_text: string;
  hidden_characters: boolean;
  lint: Problem[];
  review: Review | null;
  config: Setting[];
  docs: { name: string; html: string }[];
  takes_tests: boolean;
}
export interface ToolStats {
  tool: string;
  calls: number;
  errors: number;
  p50_ms: number;
  max_ms: number;
  /** There were more calls than are counted. */
  is_capped?: boolean;
}
export interface Stats {
  total: number;
  is_capped: boolean;
  by_tool: ToolStats[];
}

export interface Call {
  id: string;
  tool: string;
  state: string;
  caller: string;
  started: number;
  ended: number | null;
  arguments: Values;
  text: string;
  reason?: string | null;
  time_ms: number | null;
  envelope?: Envelope;
  process?: Process | null;
}

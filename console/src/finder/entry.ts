/** Something that can be found: where it leads, or what it does. */
import type { Sign } from "../ui/icon";

export const KINDS = [
  "recent",
  "search",
  "tool",
  "page",
  "action",
  "setting",
  "code",
  "chat",
  "call",
  "task",
  "schedule",
] as const;
export type Kind = (typeof KINDS)[number];

export interface Entry {
  /** Unlike all others: the kind, and a name within it. */
  id: string;
  kind: Kind;
  sign: Sign;
  title: string;
  detail?: string;
  /** All names it is found by, in both languages. */
  names: readonly string[];
  /** Its title comes from a tool, a model or a person. */
  given?: boolean;
  href?: string;
  run?: () => void;
}

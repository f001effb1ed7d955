/** The result of a call, as every tool gives it (docs/envelope.md). */
import type { Values } from "../ui/schema-form";
import type { Failure } from "./api";

export interface Envelope {
  status: string;
  data: Values;
  text: string;
  error?: Failure | null;
  stats: Record<string, unknown>;
  context: Record<string, unknown>;
}

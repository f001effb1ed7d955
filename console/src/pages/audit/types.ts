/** An entry of the audit trail. */
export interface AuditEntry {
  id: string;
  at: number;
  action: string;
  by: string;
  way: string;
  address: string;
  tool: string;
  plugin: string;
  target: string;
  detail: Record<string, unknown>;
}

/** The first parts of actions, by which entries are chosen. */
export const GROUPS = [
  "approval",
  "rule",
  "plugin",
  "mcp_server",
  "key",
  "session",
  "settings",
  "schedule",
  "backup",
  "restore",
] as const;
export type Group = (typeof GROUPS)[number];

/** An entry of the audit trail. */

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

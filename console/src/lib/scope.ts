/** The words for what a key may do. */
import { dictionary } from "./language";

const words = dictionary<Record<string, string>>(
  { chat: "chat", tools: "tools", approve: "approvals", node: "node", admin: "full access" },
  { chat: "对话", tools: "工具", approve: "审批", node: "节点", admin: "完全访问" },
);

export function scopeWord(scope: string): string {
  return words()[scope] ?? scope;
}

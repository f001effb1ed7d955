/** The branches of a conversation. Its messages form a tree, each naming the one before it; those with the same parent
 * begin branches, and one path from the first message to a leaf is in view. A list of nodes has every parent before its
 * children, so the last of a group is the newest. */
export interface Node {
  id: string;
  /** The id of the message before it; empty: it begins the conversation. */
  parent: string;
}

/** Gives every message its parent. Those of an older console name none: they follow each other. */
export function linkMessages<T extends { id: string; parent?: string }>(messages: readonly T[]): (T & Node)[] {
  const known = new Set([""]);
  let before = "";
  return messages.map((message) => {
    const parent = message.parent !== undefined && known.has(message.parent) ? message.parent : before;
    known.add((before = message.id));
    return { ...message, parent };
  });
}

/** The nodes from the first message to `leaf`. */
export function pathTo<T extends Node>(nodes: readonly T[], leaf: string): T[] {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const path: T[] = [];
  for (let node = known.get(leaf); node; node = known.get(node.parent)) {
    path.push(node);
    known.delete(node.id); // whatever was stored, the path ends
  }
  return path.reverse();
}

/** The end of the newest branch that leads through a node; of the newest of all when there is no such node. */
export function newestLeaf(nodes: readonly Node[], through: string): string {
  const reached = new Set([through]);
  let leaf = "";
  for (const node of nodes)
    if (reached.has(node.parent) || node.id === through) {
      reached.add(node.id);
      leaf = node.id;
    }
  return leaf || (nodes[nodes.length - 1]?.id ?? "");
}

/** The branches that begin where a node does, oldest first, itself among them. */
export function branchesAt<T extends Node>(nodes: readonly T[], node: Node): T[] {
  return nodes.filter((one) => one.parent === node.parent);
}

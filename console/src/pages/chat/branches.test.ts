import { describe, expect, test } from "vitest";
import { branchesAt, linkMessages, newestLeaf, pathTo, type Node } from "./branches";

const node = (id: string, parent: string): Node => ({ id, parent });
/** q1 has two replies; the first goes on with two versions of q2. */
const TREE = [
  node("q1", ""),
  node("r1", "q1"),
  node("q2", "r1"),
  node("s1", "q2"),
  node("r2", "q1"),
  node("q2b", "r1"),
  node("s2", "q2b"),
];
const ids = (nodes: readonly Node[]) => nodes.map((one) => one.id);

describe("linkMessages", () => {
  test("messages of an older console follow each other", () =>
    expect(linkMessages([{ id: "a" }, { id: "b" }, { id: "c" }])).toEqual([
      node("a", ""),
      node("b", "a"),
      node("c", "b"),
    ]));

  test("parents that are given stay; one that is not there before it is the message before", () =>
    expect(linkMessages([node("a", ""), node("b", "a"), node("c", ""), node("d", "gone"), node("e", "e")])).toEqual([
      node("a", ""),
      node("b", "a"),
      node("c", ""),
      node("d", "c"),
      node("e", "d"),
    ]));
});

describe("pathTo", () => {
  test("leads from the first message to the leaf", () => {
    expect(ids(pathTo(TREE, "s1"))).toEqual(["q1", "r1", "q2", "s1"]);
    expect(ids(pathTo(TREE, "r2"))).toEqual(["q1", "r2"]);
    expect(pathTo(TREE, "gone")).toEqual([]);
  });

  test("ends although nodes were stored that name each other", () =>
    expect(ids(pathTo([node("a", "b"), node("b", "a")], "a"))).toEqual(["b", "a"]));
});

test("newestLeaf is the end of the newest branch through a node", () => {
  expect(newestLeaf(TREE, "q1")).toBe("s2");
  expect(newestLeaf(TREE, "q2")).toBe("s1");
  expect(newestLeaf(TREE, "r2")).toBe("r2");
  expect(newestLeaf(TREE, "")).toBe("s2");
  expect(newestLeaf(TREE, "gone")).toBe("s2");
  expect(newestLeaf([], "")).toBe("");
});

test("branchesAt has the versions of a message, oldest first", () => {
  expect(ids(branchesAt(TREE, TREE[1]!))).toEqual(["r1", "r2"]);
  expect(ids(branchesAt(TREE, TREE[5]!))).toEqual(["q2", "q2b"]);
  expect(ids(branchesAt(TREE, TREE[0]!))).toEqual(["q1"]);
});

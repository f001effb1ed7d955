import { expect, test, vi } from "vitest";
import { options, type VNode } from "preact";

async function loadAt(href: string, content: string) {
  vi.resetModules();
  vi.stubGlobal("document", { querySelector: () => ({ content }) });
  vi.stubGlobal("location", { href });
  return import("./base");
}

test("at the root of a host, addresses are paths", async () => {
  const { BASE, toAddress, toPath } = await loadAt("http://yard.test/chat/1", "/");
  expect([BASE, toAddress("/v1/tools"), toPath("/chat"), toPath("/")]).toEqual(["", "/v1/tools", "/chat", "/"]);
});

test("below a path, addresses begin with it, and other addresses are not the server's", async () => {
  const { toAddress, toPath } = await loadAt("http://yard.test/yard/chat/1", "/yard/");
  expect(toAddress("/v1/tools?limit=1")).toBe("/yard/v1/tools?limit=1");
  expect(["/yard/chat", "/yard/", "/yard", "/yardage", "/chat"].map(toPath)).toEqual(["/chat", "/", "/", null, null]);
});

test("a relative base counts from the page", async () => {
  expect((await loadAt("http://yard.test/deep/yard/chat/a%2Fb?q=1", "../")).BASE).toBe("/deep/yard");
  expect((await loadAt("http://yard.test/yard/", "./")).BASE).toBe("/yard");
  expect((await loadAt("http://yard.test/chat", "./")).BASE).toBe("");
});

test("links and images lead below the path, those of other hosts stay", async () => {
  const { addBaseToLinks } = await loadAt("http://yard.test/yard/chat", "/yard/");
  addBaseToLinks();
  const make = (type: unknown, props: object) => {
    const vnode = { type, props: { ...props } } as unknown as VNode;
    options.vnode?.(vnode);
    return vnode.props;
  };
  expect(make("a", { href: "/tasks?x=1" })).toEqual({ href: "/yard/tasks?x=1" });
  expect(make("img", { src: "/console/icon.svg" })).toEqual({ src: "/yard/console/icon.svg" });
  for (const props of [{ href: "//other.test/" }, { href: "https://other.test/" }, { href: "#part" }, { title: "/x" }])
    expect(make("a", props)).toEqual(props);
  expect(make(() => null, { href: "/tasks" })).toEqual({ href: "/tasks" });
});

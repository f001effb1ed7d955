/** The name of a caller: a key is shown with its name if this session may read the names. */
import { signal } from "@preact/signals";
import { api, hasScope } from "./api";
import { dictionary } from "./language";

const words = dictionary(
  {
    owner: "owner",
    cli: "command line",
    local: "this machine",
    yard: "Python",
    import: "import",
    within: (kind: string, name: string) => `${name} (${kind})`,
  },
  {
    owner: "管理员",
    cli: "命令行",
    local: "本机",
    yard: "Python",
    import: "导入",
    within: (kind: string, name: string) => `${name}（${kind}）`,
  },
);
const KEY = "key:";
const OWNER = "owner";
const AGAIN_MS = 60_000;
const names = signal<ReadonlyMap<string, string>>(new Map());
let requestedAt = -Infinity;

export function callerName(caller: string): string {
  if (!caller.startsWith(KEY)) return programName(caller);
  const id = caller.slice(KEY.length);
  const name = names.value.get(id);
  if (name === undefined && id.startsWith("key_")) loadNames();
  return name ?? keyName(id);
}

/** A caller without a key: `cli:/path/of/PROJECT`, `mcp:CLIENT`, `yard:ID`; what is not known is shown as it is. */
function programName(caller: string): string {
  const [kind = "", ...rest] = caller.split(":");
  const name = rest.join(":").split("/").at(-1)!; // of a project, its folder
  const t = words();
  if (kind === "yard" || kind === "local") return t[kind];
  if (kind === "mcp") return name ? t.within("MCP", name) : "MCP";
  if (kind === "cli" || kind === "import") return name ? t.within(t[kind], name) : t[kind];
  return caller;
}

/** The caller that people call by this name; any other text is a caller as it stands. */
export function callerFromName(name: string): string {
  if (words.both.some((one) => one.owner === name)) return KEY + OWNER;
  if (name.includes(":")) return name;
  loadNames();
  for (const [id, known] of names.value) if (known === name || id === name) return KEY + id;
  return name;
}

/** The key that a home begins with has a word of its own; any other is shown as it is. */
export function keyName(key: string): string {
  return key === OWNER ? words().owner : key;
}

/** A key made a moment ago is not known yet, one that was removed never again: we ask now and then. */
function loadNames(): void {
  if (!hasScope("admin") || performance.now() - requestedAt < AGAIN_MS) return;
  requestedAt = performance.now();
  api<{ data: { id: string; name: string }[] }>("/v1/keys").then(
    (keys) => (names.value = new Map(keys.data.map((one) => [one.id, one.name]))),
    () => undefined, // Then its id has to do.
  );
}

/** The name of a caller: a key is shown with its name if this session may read the names. */
import { signal } from "@preact/signals";
import { api, hasScope } from "./api";
import { dictionary } from "./language";

const words = dictionary({ owner: "owner" }, { owner: "管理员" });
const KEY = "key:";
const OWNER = "owner";
const AGAIN_MS = 60_000;
const names = signal<ReadonlyMap<string, string>>(new Map());
let requestedAt = -Infinity;

export function callerName(caller: string): string {
  if (!caller.startsWith(KEY)) return caller;
  const id = caller.slice(KEY.length);
  const name = names.value.get(id);
  if (name === undefined && id.startsWith("key_")) loadNames();
  return name ?? keyName(id);
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

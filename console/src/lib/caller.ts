/** Who made a call: a key is called by the name that was given to it, as far as this session may know the names. */
import { signal } from "@preact/signals";
import { api, hasScope } from "./api";

const KEY = "key:";
const AGAIN_MS = 60_000;
const names = signal<ReadonlyMap<string, string>>(new Map());
let asked = -Infinity;

export function callerName(caller: string): string {
  if (!caller.startsWith(KEY)) return caller;
  const id = caller.slice(KEY.length);
  const name = names.value.get(id);
  if (name === undefined && id.startsWith("key_")) loadNames();
  return name ?? id;
}

/** A key made a moment ago is not known yet, one that was removed never again: we ask now and then. */
function loadNames(): void {
  if (!hasScope("admin") || performance.now() - asked < AGAIN_MS) return;
  asked = performance.now();
  api<{ data: { id: string; name: string }[] }>("/v1/keys").then(
    (keys) => (names.value = new Map(keys.data.map((one) => [one.id, one.name]))),
    () => undefined, // Then its id has to do.
  );
}

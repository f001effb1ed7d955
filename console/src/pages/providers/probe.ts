/** Tests of providers: the server asks them for their models, with the settings as they are or as they would be. */
import { signal } from "@preact/signals";
import type { UpstreamTestResult } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import type { Values } from "./provider";

export type ProbeState = UpstreamTestResult | "running" | { fault: ApiError };

/** The last test of each stored provider, by its name. */
export const probes = signal<Readonly<Record<string, ProbeState>>>({});

export function probe(name: string, values: Values = {}): Promise<UpstreamTestResult> {
  return api<UpstreamTestResult>("/v1/upstream/test", { body: { name, values } });
}

/** The models that a provider listed last: they stay in sight while it is tested again. */
const listed = new Map<string, readonly string[]>();

export async function probeStored(name: string): Promise<void> {
  const put = (state: ProbeState) => (probes.value = { ...probes.peek(), [name]: state });
  listed.set(name, modelsOf(name));
  put("running");
  await probe(name).then(put, (error: unknown) => put({ fault: error as ApiError }));
}

export function modelsOf(name: string): readonly string[] {
  const state = probes.value[name];
  if (state === "running") return listed.get(name) ?? [];
  return typeof state === "object" && "models" in state ? state.models : [];
}

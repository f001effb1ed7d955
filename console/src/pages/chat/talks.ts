/** The conversations that are open in this window. They live on when the page is left, so that a reply goes on and is
 * there when one comes back. */
import { api, ApiError } from "../../lib/api";
import { hear } from "../../lib/live";
import { keeper } from "./keep";
import { newId, type Stored } from "./model";
import { blankTalk, messagesOf, receive, type Talk } from "./talk";
import { follow } from "./turn";

const MOST = 12;
const talks = new Map<string, Talk>();

function make(id: string, fresh: boolean): Talk {
  const talk = blankTalk(id, fresh);
  talk.keep = keeper(talk);
  talks.set(id, talk);
  for (const [old, one] of talks) if (talks.size > MOST && old !== id && !one.running.peek()) talks.delete(old);
  return talk;
}

export function newTalk(): Talk {
  return make(newId(), true);
}

export function talkOf(id: string): Talk {
  const known = talks.get(id);
  if (known) return known;
  const talk = make(id, false);
  void load(talk);
  return talk;
}

export async function load(talk: Talk): Promise<void> {
  try {
    const stored = await api<Stored>(`/v1/conversations/${encodeURIComponent(talk.id)}`);
    // What was said or kept here meanwhile is newer; it meets what another window has when it is kept.
    if (talk.state.peek() === "ready" && (talk.running.peek() || stored.version <= talk.version)) return;
    receive(talk, stored, []);
    talk.state.value = "ready";
    if (messagesOf(talk).at(-1)?.state === "running") void follow(talk);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    talk.error.value = error;
    talk.state.value = error.status === 404 ? "missing" : "fault";
  }
}

export function forget(id: string): void {
  talks.delete(id);
}

/** Another window has changed a conversation that is open here. */
hear(["conversation.changed"], (event) => {
  for (const talk of event.type === "gap" ? talks.values() : [talks.get(String(event.data["id"]))]) {
    if (!talk || talk.fresh || talk.running.peek()) continue;
    const newer = () => event.type === "gap" || Number(event.data["version"]) > talk.version;
    if (newer())
      void talk.keep("wait").then(() => {
        if (newer() && !talk.running.peek()) void load(talk);
      });
  }
});

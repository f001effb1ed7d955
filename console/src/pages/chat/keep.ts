/** Keeping a conversation on the server: one request at a time, the newest state last. When another window was faster,
 * both are put together and kept again. */
import { api, ApiError } from "../../lib/api";
import { keptMessages } from "./kept";
import type { Row, Stored } from "./model";
import { messagesOf, receive, type Talk } from "./talk";

const TRIES = 4;

/** `only`: nothing new is to be kept, but wait for what is on its way. */
export function keeper(talk: Talk): (only?: "wait") => Promise<void> {
  let line: Promise<void> = Promise.resolve();
  let waits = false;
  return (only) => {
    if (only || waits || talk.fresh) return line; // the one that waits will take what is there by then
    waits = true;
    line = line.then(() => {
      waits = false;
      return put(talk);
    });
    return line;
  };
}

async function put(talk: Talk): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const body = {
        title: talk.title.peek(),
        model: talk.model.peek(),
        settings: talk.settings.peek(),
        messages: keptMessages(messagesOf(talk)),
        version: talk.version,
      };
      const row = await api<Row>(`/v1/conversations/${talk.id}`, { method: "PUT", body });
      talk.version = row.version;
      talk.unsaved.value = null;
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 409) return void (talk.unsaved.value = error);
      const { title, settings } = { title: talk.title.peek(), settings: talk.settings.peek() };
      const theirs = await api<Stored>(`/v1/conversations/${talk.id}`).catch(() => null);
      if (theirs) receive(talk, { ...theirs, title: title || theirs.title, settings }, messagesOf(talk));
      else talk.version = 0;
    }
  }
}

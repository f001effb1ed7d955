/** Merges two versions of a conversation: what the server has comes first; what only this window has follows; of one
 * message the copy counts that has come to its end, for a window may have lost what another one still reads. Nothing
 * that somebody wrote is lost. */
import type { Message } from "./model";

export function mergeMessages(theirs: readonly Message[], ours: readonly Message[]): Message[] {
  const own = new Map(ours.map((message) => [message.id, message]));
  const known = new Set(theirs.map((message) => message.id));
  const both = theirs.map((message) => {
    const mine = own.get(message.id);
    return mine &&
      (message.state === "running" || message.state === "failed") &&
      mine.pieces.length >= message.pieces.length
      ? mine
      : message;
  });
  return [...both, ...ours.filter((message) => !known.has(message.id))];
}

/** The stored form of a conversation: large media are shown while the window is open, and only counted afterwards. */
import type { Call, Message } from "./model";

const LARGEST = 1_400_000; // characters of one picture, sound or film
const ALL = 5_000_000; // of those of one conversation; the server takes 8 MiB in all

/** Drops media that are too large; the newest are kept. */
export function toStoredMessages(messages: readonly Message[]): Message[] {
  let room = ALL;
  const storedCall = (call: Call): Call => {
    const media = call.media.filter((uri) => {
      const fits = uri.length <= LARGEST && uri.length <= room;
      if (fits) room -= uri.length;
      return fits;
    });
    return media.length === call.media.length
      ? call
      : { ...call, media, left: call.left + call.media.length - media.length };
  };
  return messages
    .toReversed()
    .map((message) => ({
      ...message,
      pieces: message.pieces.map((piece) => (piece.kind === "call" ? storedCall(piece) : piece)),
    }))
    .toReversed();
}

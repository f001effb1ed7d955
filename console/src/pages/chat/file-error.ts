/** Raised when a file cannot be imported. */
export class FileError extends Error {
  constructor(
    readonly why: "notConversation" | "noMessages" | "newerFormat" | "badMessage" | "badMarker",
    /** The number of the message, or of the line with the marker, from 1. */
    readonly at = 0,
  ) {
    super(why);
  }
}

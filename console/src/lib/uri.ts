/** Decode a part of an address; one that was cut in the middle of a sign stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Characters that could hide or reorder what a person is about to allow, made visible: `⟦U+202E⟧`. */
// Controls but tab and newline, soft hyphen, zero-width, bidi, tags and other format characters, lone surrogates.
const HIDDEN =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class -- each of these characters is looked for by itself
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]|\p{Surrogate}/gu;

export function revealHidden(text: string): string {
  return text.replace(HIDDEN, (sign) => `⟦U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟧`);
}

export function hasHidden(text: string): boolean {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text);
}

/** Indented JSON with nothing hidden. */
export function formatJson(value: unknown): string {
  return revealHidden(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));
}

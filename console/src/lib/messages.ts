/** Messages of the server in the language of the page. The server sends each English sentence with a code and its
 * parameters, in fields beside it; the Chinese is keyed by the code, and comes from the server too. A text without a
 * code (the words of a plugin or of the operating system), or with a code that this page does not know, is shown as it
 * is. */
import { signal } from "@preact/signals";
import { toAddress } from "./base";
import { revealHidden } from "./hidden-characters";
import { language } from "./language";

export interface ServerMessage {
  text: string;
  code?: string;
  params?: MessageParams;
}
type MessageParams = Readonly<Record<string, string | number | ServerMessage>>;

/** A part of a message; `given` is what was filled in: a name, a path, the words of somebody else. */
export interface Piece {
  text: string;
  given: boolean;
}

/** The Chinese messages: loaded when the first is shown, or before, when nothing else happens. */
const templates = signal<Readonly<Record<string, string>> | null>(null);
let coming: Promise<void> | null = null;

/** Load the messages of the language, if it needs any; without them, the sentences stay English. */
export function loadMessages(): Promise<void> {
  if (language.value !== "zh") return Promise.resolve();
  // As data, not as a script: a browser reads it several times faster.
  return (coming ??= fetch(toAddress("/console/messages.zh.json"))
    .then((response) => response.json() as Promise<Readonly<Record<string, string>>>)
    .then(
      (loaded) => {
        templates.value = loaded;
      },
      () => {
        templates.value = {};
      },
    ));
}

/** The message in a field of a response, from the fields NAME, NAME_code and NAME_params. */
export function messageIn(source: object, field: string): ServerMessage {
  const fields = source as Record<string, unknown>;
  return {
    text: (fields[field] as string | null | undefined) ?? "",
    code: fields[`${field}_code`] as string | undefined,
    params: fields[`${field}_params`] as MessageParams | undefined,
  };
}

/** Tell whether the console says it in its own language: in English, every message with a code. */
export function isTranslatable(message: ServerMessage): boolean {
  if (message.code === undefined) return false;
  return language.value !== "zh" || templates.value === null || Object.hasOwn(templates.value, message.code);
}

export function toPieces(message: ServerMessage): Piece[] {
  if (!isTranslatable(message)) return message.text ? [{ text: message.text, given: true }] : [];
  if (language.value === "pseudo") return [{ text: `${message.text} xx`, given: false }];
  if (language.value !== "zh") return [{ text: message.text, given: false }];
  if (templates.value === null) {
    void loadMessages();
    return []; // no flash of English
  }
  const template = templates.value[message.code!]!;
  const pieces = template.split(/(\{\w+\})/).flatMap((part) => fillPart(part, message.params ?? {}));
  return pieces.map((piece, at) =>
    withoutSpaces(withoutStop(piece, pieces[at - 1], pieces[at + 1]), pieces[at - 1], pieces[at + 1]),
  );
}

/** A message as plain text, with nothing hidden. */
export function messageText(message: ServerMessage): string {
  return revealHidden(
    toPieces(message)
      .map((piece) => piece.text)
      .join(""),
  );
}

/** A sentence inside another one keeps its full stop only where the outer one has none, and ends only once. */
function withoutStop(piece: Piece, before: Piece | undefined, next: Piece | undefined): Piece {
  let text = piece.text;
  if (text.endsWith("。") && /^[。；，：）]/.test(next?.text ?? "")) text = text.slice(0, -1);
  if (text.startsWith("。") && /[？！]$/.test(before?.text ?? "")) text = text.slice(1);
  return text === piece.text ? piece : { ...piece, text };
}

/** Between Chinese characters there is no space; the templates have one around what may be filled in with letters. */
function withoutSpaces(piece: Piece, before: Piece | undefined, next: Piece | undefined): Piece {
  let text = piece.text;
  if (/[\u4e00-\u9fff] $/.test(text) && /^[\u4e00-\u9fff]/.test(next?.text ?? "")) text = text.slice(0, -1);
  if (/^ [\u4e00-\u9fff]/.test(text) && /[\u4e00-\u9fff]$/.test(before?.text ?? "")) text = text.slice(1);
  return text === piece.text ? piece : { ...piece, text };
}

function fillPart(part: string, params: MessageParams): Piece[] {
  const value = /^\{\w+\}$/.test(part) ? params[part.slice(1, -1)] : undefined;
  if (value === undefined || value === null) return part ? [{ text: part, given: false }] : [];
  return typeof value === "object" ? toPieces(value) : [{ text: String(value), given: true }];
}

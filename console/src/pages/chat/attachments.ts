/** Files that go with a message: text and PDFs as text, which the server reads; pictures as data. */
import type { AttachmentContent } from "toolyard-client";
import { api } from "../../lib/api";
import { formatBytes } from "../../lib/clock";
import { UserError } from "../../lib/toast";
import { ImageError, isImage, readImage, toBlob } from "./images";
import { composeWords } from "./words-compose";

export interface Attachment {
  /** Of a project file its path. */
  name: string;
  kind: "text" | "pdf";
  size: number;
  text: string;
  truncated: boolean;
  pages: number | null;
}
/** A file that was read: its text, or a picture as a data URI. */
export type ReadFile = { attachment: Attachment } | { image: string };

export const MOST_FILES = 10;
export const MOST_IMAGES = 6;
export const MOST_TEXT = 500_000; // characters in one message: a conversation is stored with at most 8 MiB
const TEXT_BYTES = 2 * 1024 ** 2; // of a text file that the server looks at
const PDF_BYTES = 32 * 1024 ** 2;

export async function readUpload(file: File): Promise<ReadFile> {
  const t = composeWords();
  if (isImage(file.type)) return { image: await readPicture(file, file.name) };
  const isPdf = file.type === "application/pdf" || /\.pdf$/i.test(file.name);
  if (isPdf && file.size > PDF_BYTES) throw new UserError(t.largeFile(file.name, formatBytes(PDF_BYTES)));
  let body: Blob;
  try {
    // A copy, because what is read only while it is sent fails without a reason: a folder, or a file that is gone.
    body = new Blob([await (isPdf ? file : file.slice(0, TEXT_BYTES)).arrayBuffer()]);
  } catch {
    throw new UserError(t.unreadableFile(file.name));
  }
  const content = await api<AttachmentContent>("/v1/attachments", {
    query: { name: file.name.slice(-255) },
    body,
    headers: { "Content-Type": "application/octet-stream" },
  });
  return readContent({ ...content, size: file.size, truncated: content.truncated || body.size < file.size });
}

export async function readProjectFile(path: string): Promise<ReadFile> {
  return readContent(await api<AttachmentContent>("/v1/project/attachment", { query: { path } }));
}

async function readContent({ image, kind, ...content }: AttachmentContent): Promise<ReadFile> {
  if (kind === "image") return { image: await readPicture(toBlob(image), content.name) };
  return { attachment: { ...content, kind } };
}

async function readPicture(file: Blob, name: string): Promise<string> {
  try {
    return await readImage(file);
  } catch (error) {
    const t = composeWords();
    throw new UserError(
      error instanceof ImageError && error.why === "large" ? t.largePicture(name) : t.badPicture(name),
    );
  }
}

/** The text of a message for the model: its files, each under its name, then the words. The server knows the tags: tool
 * requests inside them never run. */
export function withAttachments(text: string, attachments: readonly Attachment[]): string {
  return [...attachments.map(toTaggedText), text].filter(Boolean).join("\n\n");
}

function toTaggedText({ name, text, truncated, pages }: Attachment): string {
  const part = truncated ? ` part="the first ${text.length} characters"` : "";
  const count = pages ? ` pages="${pages}"` : "";
  return `<attached_file name="${escapeName(name)}"${count}${part}>\n${text}\n</attached_file>`;
}

function escapeName(name: string): string {
  // eslint-disable-next-line no-control-regex -- a name may have any character, and these would break the line
  return name.replace(/[\u0000-\u001f\u007f]/g, " ").replace(/[&"<>]/g, (sign) => ESCAPES[sign]!);
}
const ESCAPES: Record<string, string> = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" };

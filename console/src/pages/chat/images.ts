/** Pictures that go with a message: as data, made smaller when they are large. */
const KINDS = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGEST = 700_000; // bytes: several of them fit into a stored conversation
const SIDE = 1600; // pixels

export class ImageError extends Error {
  constructor(readonly why: "kind" | "large") {
    super(why);
  }
}

export function isImage(type: string): boolean {
  return KINDS.has(type);
}

/** The bytes of a data URI; the policy of the page lets nothing fetch one. */
export function toBlob(uri: string): Blob {
  const [head = "", data = ""] = uri.split(",", 2);
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  return new Blob([bytes], { type: head.slice("data:".length).split(";")[0] });
}

export async function readImage(file: Blob): Promise<string> {
  if (!KINDS.has(file.type)) throw new ImageError("kind");
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new ImageError("kind");
  });
  if (file.size <= LARGEST) {
    bitmap.close();
    return dataOf(file);
  }
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d")!.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const small = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  if (!small || small.size > LARGEST) throw new ImageError("large");
  return dataOf(small);
}

function dataOf(file: Blob): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result as string); // a data URI is text
    reader.onerror = () => failed(new ImageError("kind"));
    reader.readAsDataURL(file);
  });
}

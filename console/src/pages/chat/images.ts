/** Pictures that go with a message: as data, made smaller when they are large. */
const KINDS = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGEST = 1_400_000; // bytes
const SIDE = 1600; // pixels

export class ImageError extends Error {
  constructor(readonly why: "kind" | "large") {
    super(why);
  }
}

export async function readImage(file: Blob): Promise<string> {
  if (!KINDS.has(file.type)) throw new ImageError("kind");
  if (file.size <= LARGEST) return dataOf(file);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new ImageError("kind");
  });
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

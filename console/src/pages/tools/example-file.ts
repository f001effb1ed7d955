/** The examples of the built-in tools name README.md. In a project without it they name a file that is there. */
import type { Values } from "../../ui/schema-form";

const EXAMPLE_FILE = "README.md";

export const namesExampleFile = (input: Values): boolean => JSON.stringify(input).includes(EXAMPLE_FILE);

/** The file that examples name instead: one that people read, if there is one. Hidden files may hold secrets. */
export function pickExampleFile(files: readonly string[]): string | null {
  const seen = files.filter((name) => !name.startsWith("."));
  const kinds = [/^README\.md$/, /^readme\b/i, /\.(md|txt)$/i, /./];
  return kinds.map((kind) => seen.find((name) => kind.test(name))).find((name) => name !== undefined) ?? null;
}

/** The examples as this project can run them; those that need a file are left out where there is none. */
export function fitExamples(inputs: readonly Values[], file: string | null): Values[] {
  return inputs.flatMap((input) => {
    if (!namesExampleFile(input)) return [input];
    if (file === null) return [];
    const quoted = JSON.stringify(file).slice(1, -1);
    return [JSON.parse(JSON.stringify(input).replaceAll(EXAMPLE_FILE, () => quoted)) as Values];
  });
}

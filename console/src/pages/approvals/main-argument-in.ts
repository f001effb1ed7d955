/** The main argument in the beginning of arguments, which is all that a list has of large ones. */
import { mainArgument } from "../../lib/main-argument";

const TEXT_FIELD = /"((?:[^"\\]|\\.)*)"\s*:\s*"((?:[^"\\]|\\.)*)/g;

/** The main argument in JSON that may be cut: a list has only the beginning of large arguments. */
export function mainArgumentIn(json: string): string {
  try {
    return mainArgument(JSON.parse(json));
  } catch {
    const fields = [...json.matchAll(TEXT_FIELD)].map(([, name, value]) => [unescape(name!), unescape(value!)]);
    return mainArgument(Object.fromEntries(fields));
  }
}

function unescape(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}

/** An id or a path, whole, with a button that copies it. With `href` it leads there as well. */
import { revealHidden } from "../lib/hidden-characters";
import { CopyButton } from "./button";

export function Copyable({ text, href }: { text: string; href?: string }) {
  return (
    <span class="handle">
      {href ? (
        <a class="mono" data-given href={href}>
          {revealHidden(text)}
        </a>
      ) : (
        <code>{revealHidden(text)}</code>
      )}
      <CopyButton text={text} />
    </span>
  );
}

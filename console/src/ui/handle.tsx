/** An id or a path, whole, with a button that copies it. With `href` it leads there as well. */
import { visible } from "../lib/visible";
import { CopyButton } from "./button";

export function Handle({ text, href }: { text: string; href?: string }) {
  return (
    <span class="handle">
      {href ? (
        <a class="mono" data-given href={href}>
          {visible(text)}
        </a>
      ) : (
        <code>{visible(text)}</code>
      )}
      <CopyButton text={text} />
    </span>
  );
}

/** One line of a file: what differs from the line it replaces stands out, and nothing in it is hidden. */
import { revealHidden } from "../../lib/hidden-characters";
import { differingRange, type Line } from "./model";
import { patchWords as words } from "./words";

export function Text({ line, spaces }: { line: Line; spaces: boolean }) {
  const returns = line.text.endsWith("\r");
  const text = returns ? line.text.slice(0, -1) : line.text;
  const range =
    line.pair === null ? null : differingRange(text, line.pair.endsWith("\r") ? line.pair.slice(0, -1) : line.pair);
  const show = (part: string) =>
    spaces ? revealHidden(part).replaceAll(" ", "·").replaceAll("\t", "→\t") : revealHidden(part);
  // A line end that changes must be seen with the toggle off, too: else such a change looks like none.
  const tellsReturn = returns && (spaces || line.kind !== " ");
  return (
    <>
      {range ? (
        <>
          {show(text.slice(0, range[0]))}
          {range[1] > range[0] && <mark>{show(text.slice(range[0], range[1]))}</mark>}
          {show(text.slice(range[1]))}
        </>
      ) : (
        show(text)
      )}
      {tellsReturn && <span class="patch-cr">CR</span>}
      {line.endless && <span class="patch-endless">{`\\ ${words().noNewline}`}</span>}
    </>
  );
}

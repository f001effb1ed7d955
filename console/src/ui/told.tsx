/** A sentence of the server in the language of the page; what it does not know is shown as it came. */
import { told } from "../lib/told";
import { revealHidden } from "../lib/hidden-characters";

export function Told({ text }: { text: string }) {
  const pieces = told(text);
  if (!pieces) return <span data-given>{revealHidden(text)}</span>;
  return (
    <>
      {pieces.map((one, at) =>
        one.given ? (
          <span key={at} data-given>
            {revealHidden(one.text)}
          </span>
        ) : (
          one.text
        ),
      )}
    </>
  );
}

/** A message of the server in the language of the page. */
import { revealHidden } from "../lib/hidden-characters";
import { type ServerMessage, toPieces } from "../lib/messages";

export function MessageText({ message }: { message: ServerMessage }) {
  return (
    <>
      {toPieces(message).map((piece, at) =>
        piece.given ? (
          <span key={at} data-given>
            {revealHidden(piece.text)}
          </span>
        ) : (
          revealHidden(piece.text)
        ),
      )}
    </>
  );
}

/** Twenty messages of a long conversation. Those that nobody has come near are only as high as they will be about;
 * those that were near stay, and cost nothing while they are out of view. */
import { useRef } from "preact/hooks";
import { MessageView, type MessageActions } from "./message";
import type { Message } from "./model";
import { useNearView } from "./use-near-view";
import type { Cell, Conversation } from "./conversation";

export const CHAPTER = 20;

/** `open`: somebody wants to see a message in it, wherever the view is. */
export function Chapter({
  conversation,
  cells,
  last,
  open,
  actions,
}: {
  conversation: Conversation;
  cells: readonly Cell[];
  last: boolean;
  open: boolean;
  actions: MessageActions;
}) {
  const box = useRef<HTMLDivElement>(null);
  const near = useNearView(box, last || open, 2400);
  const height = near ? 0 : cells.reduce((sum, one) => sum + estimateHeight(one.at.peek()), 0);
  return (
    <div ref={box} class="chat-chapter" style={near ? {} : { height: `${height}px` }}>
      {near &&
        cells.map((one, at) => (
          <MessageView
            key={one.id}
            conversation={conversation}
            cell={one}
            last={last && at === cells.length - 1}
            actions={actions}
          />
        ))}
    </div>
  );
}

/** The approximate height of a message. */
function estimateHeight(message: Message): number {
  const signs =
    message.text.length +
    message.pieces.reduce((sum, piece) => sum + (piece.kind === "text" ? piece.text.length : 60), 0);
  return message.role === "user" ? 70 + signs / 4 : 110 + Math.min(60_000, signs / 4);
}

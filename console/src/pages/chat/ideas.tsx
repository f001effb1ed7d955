/** A conversation that has not begun: a few things to say, to a model of a provider or to the built-in guide. */
import { Icon, type Sign } from "../../ui/icon";
import { FirstRunHint } from "../welcome/hint";
import { AssistantPicker } from "./assistants-view";
import type { Conversation } from "./conversation";
import { TOUR } from "./models";
import { send } from "./turn";
import { words } from "./words";

export function Ideas({
  conversation,
  onSent,
  onManage,
  onNew,
}: {
  conversation: Conversation;
  onSent: () => void;
  onManage: () => void;
  onNew: () => void;
}) {
  const t = words();
  const ideas: [Sign, string, string][] =
    conversation.model.value === TOUR
      ? [
          ["folder", t.tourFiles, t.tourFilesNote],
          ["picture", t.ideaPlot, t.tourPlotNote],
          ["diagram", t.tourReply, t.tourReplyNote],
          ["tasks", t.tourTask, t.tourTaskNote],
        ]
      : [
          ["folder", t.ideaProject, t.ideaProjectNote],
          ["picture", t.ideaPlot, t.ideaPlotNote],
          ["diagram", t.ideaDiagram, t.ideaDiagramNote],
          ["edit", t.ideaWrite, t.ideaWriteNote],
        ];
  return (
    <div class="chat-ideas">
      <h2>{t.hello}</h2>
      <p class="quiet">{t.helloText}</p>
      <AssistantPicker conversation={conversation} onManage={onManage} onNew={onNew} />
      <div class="chat-idea-grid">
        {ideas.map(([sign, text, note]) => (
          <button
            key={text}
            type="button"
            class="chat-idea"
            disabled={!conversation.model.value}
            onClick={() => {
              void send(conversation, text, []);
              onSent();
            }}
          >
            <Icon sign={sign} size={18} />
            <span>
              <strong>{text}</strong>
              <span class="faint">{note}</span>
            </span>
          </button>
        ))}
      </div>
      <FirstRunHint />
    </div>
  );
}

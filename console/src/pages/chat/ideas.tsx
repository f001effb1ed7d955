/** A conversation that has not begun: a few things to say that work with any model, the built-in guide too. */
import { Icon, type Sign } from "../../ui/icon";
import { FirstRunHint } from "../welcome/hint";
import { AssistantPicker } from "./assistants-view";
import type { Conversation } from "./conversation";
import { send } from "./turn";
import { words } from "./words";

export function Ideas({
  conversation,
  onSent,
  onManage,
}: {
  conversation: Conversation;
  onSent: () => void;
  onManage: () => void;
}) {
  const t = words();
  const ideas: [Sign, string, string][] = [
    ["folder", t.ideaFiles, t.ideaFilesNote],
    ["status", t.ideaPlot, t.ideaPlotNote],
    ["file", t.ideaReply, t.ideaReplyNote],
    ["clock", t.ideaTask, t.ideaTaskNote],
  ];
  return (
    <div class="chat-ideas">
      <h2>{t.hello}</h2>
      <p class="quiet">{t.helloText}</p>
      <AssistantPicker conversation={conversation} onManage={onManage} />
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

/** A piece of the answer: drawn by the server when it comes near the view, plain until then. */
import { useSignal } from "@preact/signals";
import type { RenderedReply } from "toolyard-client";
import { isPrinting } from "../../lib/printing";
import { messageIn } from "../../lib/messages";
import { Button, CopyButton } from "../../ui/button";
import { Code } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { MessageText } from "../../ui/message-text";
import { DrawnText, useRendered } from "./use-rendered";
import type { ShownTasks } from "./tasks";
import { ThinkingFold } from "./thinking";
import { words } from "./words";

const PLAIN = 4000; // characters that stand in for a text that nobody has come near yet

export function TextPiece({
  text,
  growing,
  cut,
  near,
  shownTasks,
  onAgain,
}: {
  text: string;
  growing: boolean;
  cut: boolean;
  near: boolean;
  shownTasks: ShownTasks;
  onAgain?: () => void;
}) {
  const asMarkdown = useSignal(false);
  const [drawn, more] = useRendered(text, {
    growing,
    cut,
    visible: near || growing,
    kind: asMarkdown.value ? "markdown" : "auto",
  });
  if (drawn === null || drawn === "failed")
    return <PlainText text={text} failed={drawn === "failed"} growing={growing} />;
  if (drawn.error && !growing && !asMarkdown.value)
    return <BadJson text={text} error={drawn.error} onMarkdown={() => (asMarkdown.value = true)} onAgain={onAgain} />;
  return (
    <>
      {drawn.think && !asMarkdown.value && (
        <ThinkingFold text={drawn.think} ms={0} growing={growing && !drawn.rendered.includes("<p>")} />
      )}
      {DrawnText && <DrawnText html={drawn.rendered} streaming={more} shownTasks={shownTasks} />}
    </>
  );
}

/** Nothing of a reply that may turn out to be JSON is shown raw while it is being drawn for the first time. */
function PlainText({ text, failed, growing }: { text: string; failed: boolean; growing: boolean }) {
  return (
    <div class="chat-plain" dir="auto" data-given>
      {growing ? "" : failed || isPrinting.value ? text : text.slice(0, PLAIN)}
      {failed && <p class="faint">{words().notDrawn}</p>}
    </div>
  );
}

function BadJson({
  text,
  error,
  onMarkdown,
  onAgain,
}: {
  text: string;
  error: NonNullable<RenderedReply["error"]>;
  onMarkdown: () => void;
  onAgain?: () => void;
}) {
  const t = words();
  return (
    <section class="chat-json" role="group" aria-label={t.jsonTitle}>
      <h2>
        <Icon sign="error" size={17} /> {t.jsonTitle}
      </h2>
      <p>
        {error.line !== null && error.column !== null ? t.jsonAt(error.line, error.column) : ""}
        <MessageText message={messageIn(error, "message")} />
      </p>
      <Code label={t.jsonRaw} text={text} />
      <div class="row">
        <CopyButton short={false} label={t.jsonCopy} text={text} />
        <Button sign="text" onClick={onMarkdown}>
          {t.asMarkdown}
        </Button>
        {onAgain && (
          <Button sign="retry" onClick={onAgain}>
            {t.askAgain}
          </Button>
        )}
      </div>
    </section>
  );
}

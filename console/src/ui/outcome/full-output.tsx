/** A file, a page at a time, as the tool Read gives it, without its numbers: the stored whole of a cut output, or what a
 * tool asked to open (`create_canvas`), in a panel at the side. Loaded when it is wanted. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, toFailure } from "../../lib/api";
import type { Envelope } from "toolyard-client";
import { failureIn } from "../../lib/envelope-text";
import { useEvent } from "../../lib/use-event";
import { revealHidden } from "../../lib/hidden-characters";
import { dictionary } from "../../lib/language";
import { canvasName, openedCanvas } from "../../lib/special-action";
import { toText } from "../../lib/text";
import { Button } from "../button";
import { Code } from "../code";
import { Dialog } from "../dialog";
import { Fault } from "../state";

const words = dictionary(
  { showFullOutput: "Show full output", next: "Next lines", from: (n: number) => `From line ${n}` },
  { showFullOutput: "查看完整输出", next: "后续行", from: (n: number) => `从第 ${n} 行起` },
);

export function Canvas() {
  const path = openedCanvas.value;
  return (
    <Dialog side given title={revealHidden(canvasName(path))} onClose={() => (openedCanvas.value = "")}>
      <FullOutput key={path} path={path} opened />
    </Dialog>
  );
}

/** `opened`: its first page is shown at once. */
export function FullOutput({ path, opened = false }: { path: string; opened?: boolean }) {
  const t = words();
  const page = useSignal<{ from: number; text: string; next: number | null } | null>(null);
  const fault = useSignal<Error | null>(null);
  const read = async (from: number) => {
    fault.value = null;
    const envelope = await api<Envelope>("/v1/tools/Read", {
      body: { path, start_line: from },
      query: { codes: true },
    });
    if (envelope.error) throw toFailure(failureIn(envelope.error, envelope.context));
    page.value = {
      from,
      text: toText(envelope.data.content).replace(/^ *\d+\t/gm, ""),
      next: typeof envelope.data.next_line === "number" ? envelope.data.next_line : null,
    };
  };
  const showFault = (error: unknown) => (fault.value = error as Error);
  const open = useEvent(() => {
    if (opened) read(1).catch(showFault);
  });
  useEffect(open, [open]);
  const next = page.value?.next;
  return (
    <>
      {page.value && <Code tall label={t.from(page.value.from)} text={page.value.text} />}
      {fault.value && <Fault error={fault.value} />}
      {(page.value ? next : !opened || fault.value) && (
        <div>
          <Button onFault={showFault} onClick={() => read(next ?? 1)}>
            {page.value ? t.next : t.showFullOutput}
          </Button>
        </div>
      )}
    </>
  );
}

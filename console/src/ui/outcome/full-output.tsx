/** The stored whole of a cut output, a page at a time, as the tool Read gives it. */
import { useSignal } from "@preact/signals";
import { api, toFailure } from "../../lib/api";
import type { Envelope } from "../../lib/envelope";
import { failureIn } from "../../lib/envelope-text";
import { toText } from "../../lib/text";
import { Button } from "../button";
import { Code } from "../code";
import { Fault } from "../state";
import { outcomeWords as words } from "./words";

export function FullOutput({ path }: { path: string }) {
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
      text: toText(envelope.data.content),
      next: typeof envelope.data.next_line === "number" ? envelope.data.next_line : null,
    };
  };
  const next = page.value?.next;
  return (
    <>
      {page.value && <Code tall label={t.from(page.value.from)} text={page.value.text} />}
      {fault.value && <Fault error={fault.value} />}
      {(!page.value || next) && (
        <div>
          <Button onFault={(error) => (fault.value = error as Error)} onClick={() => read(next ?? 1)}>
            {page.value ? t.next : t.showFullOutput}
          </Button>
        </div>
      )}
    </>
  );
}

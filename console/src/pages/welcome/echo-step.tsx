/** One call, to see that all of it works. */
import { useSignal } from "@preact/signals";
import { api, type ApiError } from "../../lib/api";
import { formatDuration } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Fault, Notice } from "../../ui/state";
import { StepFooter } from "./foot";
import type { StepProps } from "./types";
import { words } from "./words";

interface Came {
  status: string;
  text: string;
  ms: number;
}

export function EchoStep({ back, end }: StepProps & { end: () => Promise<void> }) {
  const t = words();
  const tools = useResource<{ data: { name: string }[] }>("/v1/tools");
  const result = useSignal<Came | null>(null);
  const fault = useSignal<ApiError | null>(null);
  // A server that was started without plugins has no echo; listing the folder shows the same.
  const echo = tools.value?.data.some((one) => one.name === "EchoPlugin") ?? true;
  const run = async () => {
    fault.value = null;
    const began = performance.now();
    const answer = await api<{ status: string; text: string }>(`/v1/tools/${echo ? "EchoPlugin" : "LS"}`, {
      body: echo ? { text: t.hello } : {},
    });
    result.value = { status: answer.status, text: answer.text, ms: performance.now() - began };
  };
  const works = result.value !== null && result.value.status !== "error";
  const button = (
    <Button
      kind={works ? "plain" : "primary"}
      sign="play"
      disabled={!tools.value}
      onClick={run}
      onFault={(error) => (fault.value = error as ApiError)}
    >
      {result.value ? t.runAgain : echo ? t.run : t.runOther}
    </Button>
  );
  return (
    <div class="stack">
      <div class="welcome-echo" aria-live="polite">
        {works ? (
          <>
            <span class="welcome-tick">
              <Icon sign="check" size={34} />
            </span>
            <strong>{t.works}</strong>
            <span class="mono" data-given>
              {revealHidden(result.value!.text)}
            </span>
            <span class="faint">{t.worksText(formatDuration(result.value!.ms / 1000))}</span>
          </>
        ) : (
          button
        )}
      </div>
      {result.value && !works && (
        <Notice tone="bad">
          <strong>{t.failed}</strong>
          <p data-given>{revealHidden(result.value.text)}</p>
        </Notice>
      )}
      {fault.value && <Fault title={t.failed} error={fault.value} />}
      <StepFooter back={back} skip={works ? undefined : end}>
        {works && button}
        <Button kind={works ? "primary" : "plain"} onClick={end}>
          {t.done}
        </Button>
      </StepFooter>
    </div>
  );
}

/** All arguments of a call, whole: texts as they will arrive, line by line, everything else as JSON. Long ones scroll
 * inside their box; nothing is cut. What is masked says so and how long it is, and its owner can reveal it. */
import "./style.css";
import { useSignal } from "@preact/signals";
import type { MaskedText } from "toolyard-client";
import { hasHidden, formatJson, revealHidden } from "../../lib/hidden-characters";
import { api, hasScope } from "../../lib/api";
import { joinWords } from "../../lib/language";
import { Button, CopyButton } from "../../ui/button";
import { Fault, Notice } from "../../ui/state";
import { holdPresses } from "./press-guard";
import { approvalWords as words } from "./words";

export function Arguments({
  value: masked,
  hidden = [],
  reveal,
}: {
  value: unknown;
  hidden?: MaskedText[];
  reveal?: string;
}) {
  const t = words();
  const json = useSignal(false);
  const revealed = useSignal<unknown>(undefined);
  const fault = useSignal<Error | null>(null);
  const value = revealed.value ?? masked;
  const show = async () => {
    if (!reveal) return;
    const response = await api<{ arguments: unknown }>(reveal);
    holdPresses(); // what is revealed may push the buttons down
    revealed.value = response.arguments;
  };
  const isMasked = hidden.length > 0 && revealed.value === undefined;
  const isList = typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = isList ? Object.entries(value as Record<string, unknown>) : [];
  const fullText = JSON.stringify(value, null, 2) ?? "";
  return (
    <div class="apr-part" role="group" aria-label={t.arguments}>
      <div class="apr-part-head">
        <h3>{t.arguments}</h3>
        <span class="grow" />
        {entries.length > 0 && (
          <button
            type="button"
            class="button quiet"
            aria-pressed={json.value}
            onClick={() => (json.value = !json.value)}
          >
            {t.asJson}
          </button>
        )}
        <CopyButton text={fullText} />
      </div>
      {isMasked && (
        <Notice
          tone="warn"
          action={
            reveal &&
            hasScope("admin") && (
              <Button onFault={(error) => (fault.value = error as Error)} onClick={show}>
                {t.reveal}
              </Button>
            )
          }
        >
          {t.masked(
            joinWords(hidden.map((one) => `${revealHidden(nameAt(one.at))} (${t.characters(one.characters)})`)),
          )}
        </Notice>
      )}
      {fault.value && <Fault error={fault.value} />}
      {hasHidden(formatNested(value)) && <Notice tone="warn">{t.hidden}</Notice>}
      <div class="apr-arguments" tabIndex={0} role="group" aria-label={t.arguments}>
        {isList && !entries.length ? (
          <p class="faint">{t.noArguments}</p>
        ) : json.value || !isList ? (
          <pre>{formatJson(value)}</pre>
        ) : (
          <dl>
            {entries.map(([key, one]) => (
              <Entry key={key} name={key} value={one} />
            ))}
          </dl>
        )}
      </div>
    </div>
  );
}

function Entry({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt class="mono" data-given>
        {revealHidden(name)}
      </dt>
      <dd>
        <pre>{typeof value === "string" ? (value === "" ? '""' : revealHidden(value)) : formatJson(value)}</pre>
      </dd>
    </>
  );
}

/** A JSON pointer as people write it: `headers.token`. */
function nameAt(pointer: string): string {
  return pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

/** Every text of a value and every key, joined: JSON itself would escape what we look for. */
function formatNested(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(formatNested).join(" ");
  if (typeof value === "object" && value !== null)
    return Object.entries(value)
      .map(([key, one]) => `${key} ${formatNested(one)}`)
      .join(" ");
  return "";
}

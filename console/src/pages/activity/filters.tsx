/** The search and the filters; each of them is in the address. On a phone all but the search are folded. */
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { joinWords } from "../../lib/language";
import { useResource } from "../../lib/resource";
import { setQuery, queryParam } from "../../lib/router";
import { Button } from "../../ui/button";
import { stateWord } from "../../ui/chip";
import { STATES } from "./query";
import { SearchBox } from "./search-box";
import { FILTERS } from "./use-calls";
import { activityWords as words } from "./words";

const YESTERDAY = "yesterday today"; // since the one, before the other
const SPANS: Record<string, string> = { hour: "1h", day: "24h", week: "7d" }; // the words of older links
const PAUSE_MS = 250;

export function Filters({ callers }: { callers: readonly string[] }) {
  const t = words();
  const tools =
    useResource<{ data: { name: string }[] }>("/v1/tool-summaries").value?.data.map((one) => one.name) ?? [];
  const open = useSignal(false);
  const tool = queryParam("tool");
  const [since, before] = [queryParam("since"), queryParam("before")];
  const time = before ? `${since} ${before}` : (SPANS[since] ?? since);
  const states = [...new Set([...STATES, queryParam("state")])].filter(Boolean);
  const count = FILTERS.filter((key) => key !== "q" && queryParam(key)).length;
  return (
    <div class={`act-filters${open.value ? " open" : ""}`}>
      <SearchBox values={{ tools, callers }} />
      <div class="act-fold">
        <Button kind="quiet" sign="filter" pressed={open.value} onClick={() => void (open.value = !open.value)}>
          {count ? `${t.filters} ${count}` : t.filters}
        </Button>
      </div>
      <div class="act-choices">
        <Choice
          name="state"
          label={t.state}
          any={t.anyState}
          options={states.map((state) => [state, joinWords(state.split(",").map(stateWord))])}
        />
        <Choice
          name="tool"
          label={t.tool}
          any={t.anyTool}
          options={[...new Set([...(tool ? [tool] : []), ...tools])].map((name) => [name, name])}
        />
        <Choice
          name="time"
          label={t.time}
          any={t.anyTime}
          value={time}
          onChoose={(chosen) => setQuery({ since: chosen.split(" ")[0], before: chosen.split(" ")[1] })}
          options={[
            ["1h", t.hour],
            ["24h", t.day],
            [YESTERDAY, t.yesterday],
            ["7d", t.week],
            ...(time && !["1h", "24h", YESTERDAY, "7d"].includes(time) ? [[time, t.otherTime] as const] : []),
          ]}
        />
        <Delayed
          name="caller"
          draw={(value, onInput) => <Caller value={value} onInput={onInput} callers={callers} />}
        />
        {(count > 0 || queryParam("q")) && (
          <Button
            kind="quiet"
            sign="close"
            onClick={() => setQuery(Object.fromEntries(FILTERS.map((key) => [key, null])))}
          >
            {t.clear}
          </Button>
        )}
      </div>
    </div>
  );
}

function Choice({
  name,
  label,
  any,
  options,
  value = queryParam(name),
  onChoose = (chosen) => setQuery({ [name]: chosen }),
}: {
  name: string;
  label: string;
  any: string;
  options: readonly (readonly [string, string])[];
  value?: string;
  onChoose?: (value: string) => void;
}) {
  return (
    <select
      aria-label={label}
      class={value ? "act-set" : ""}
      value={value}
      onInput={(event) => onChoose(event.currentTarget.value)}
    >
      <option value="">{any}</option>
      {options.map(([value, optionName]) => (
        <option key={value} value={value} data-given={value === optionName || undefined}>
          {optionName}
        </option>
      ))}
    </select>
  );
}

function Caller({
  value,
  onInput,
  callers,
}: {
  value: string;
  onInput: (value: string) => void;
  callers: readonly string[];
}) {
  const id = useId();
  const t = words();
  return (
    <>
      <input
        type="text"
        class={value ? "act-set" : ""}
        aria-label={t.caller}
        placeholder={t.anyCaller}
        list={id}
        autocomplete="off"
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={id}>
        {callers.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}

/** Typed text is written to the address when typing pauses. */
function Delayed({
  name,
  draw,
}: {
  name: string;
  draw: (value: string, onInput: (value: string) => void) => preact.ComponentChildren;
}) {
  const typed = useSignal(queryParam(name));
  const timer = useRef(0);
  const there = queryParam(name);
  // What the address has is what was typed, but for spaces at its ends: who rests between two words keeps theirs.
  useEffect(() => {
    if (!timer.current && typed.peek().trim() !== there) typed.value = there;
  }, [there, typed]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <>
      {draw(typed.value, (value) => {
        typed.value = value;
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => {
          timer.current = 0;
          setQuery({ [name]: value.trim() });
        }, PAUSE_MS);
      })}
    </>
  );
}

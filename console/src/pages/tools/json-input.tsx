/** The same input as the form, as JSON text. Text that is no object yet is told, with its place, and is not taken. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { readJsonProblem } from "../../lib/json-problem";
import { useEvent } from "../../lib/use-event";
import { Field } from "../../ui/field";
import type { Values } from "../../ui/schema-form";
import { tryWords } from "./words-try";

export function JsonInput({
  value,
  onValue,
  onProblem,
  problems,
}: {
  value: Values;
  onValue: (value: Values) => void;
  onProblem: (problem: string) => void;
  problems: readonly string[];
}) {
  const t = tryWords();
  const text = useSignal(JSON.stringify(value, null, 2));
  const problem = useSignal("");
  useEffect(() => {
    if (!problem.peek() && JSON.stringify(parseInput(text.peek()).value) !== JSON.stringify(value))
      text.value = JSON.stringify(value, null, 2);
  }, [problem, text, value]);
  const report = useEvent(onProblem);
  useEffect(() => () => report(""), [report]);
  const put = (typed: string) => {
    text.value = typed;
    const parsed = parseInput(typed);
    problem.value = parsed.problem;
    onProblem(parsed.problem);
    if (parsed.value) onValue(parsed.value);
  };
  return (
    <Field label={t.json} problem={problem.value || problems.join(" ")}>
      {(ids) => (
        <textarea
          {...ids}
          class="mono tools-json"
          rows={10}
          spellcheck={false}
          value={text.value}
          onInput={(event) => put(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function parseInput(text: string): { value: Values | null; problem: string } {
  const t = tryWords();
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? { value: value as Values, problem: "" }
      : { value: null, problem: t.notObject };
  } catch (error) {
    return { value: null, problem: t.notJson(readJsonProblem(text, error)) };
  }
}

/** A schedule is made, changed or made anew from another: `?form=new`, `edit:ID`, `copy:ID`. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ScheduleRow, ToolRow } from "toolyard-client";
import { api } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { setQuery } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { problemsOf, type Problems, type Values } from "../../ui/schema-form";
import { Fault, Loading, Notice } from "../../ui/state";
import { callSchema } from "../../ui/schema/command";
import { commandsOf } from "../tools/commands";
import { helpOf } from "../tools/translation";
import { ArgumentsField } from "./arguments-field";
import { schedulePath } from "./types";
import { usePreview } from "./use-preview";
import { WhenField, type When } from "./when-field";
import { scheduleWords as words } from "./words";

const MASK = "[masked]";
const NONE: Problems = new Map();

export function Form({ form }: { form: string }) {
  const [kind, id = ""] = form.split(/:(.*)/s) as [string, string?];
  const t = words();
  const before = useResource<ScheduleRow>(id ? schedulePath(id) : null);
  const close = () => setQuery({ form: null });
  if (id && !before.value) {
    return (
      <Dialog title={t.editTitle} onClose={close}>
        {before.state === "fault" ? <Fault error={before.error} retry={before.reload} /> : <Loading rows={3} />}
      </Dialog>
    );
  }
  return <Fields key={form} before={before.value} isEdit={kind === "edit"} onClose={close} />;
}

function Fields({ before, isEdit, onClose }: { before: ScheduleRow | null; isEdit: boolean; onClose: () => void }) {
  const t = words();
  const tools = useResource<{ data: ToolRow[] }>("/v1/tools");
  const tool = useSignal(before?.tool ?? "");
  const given = useSignal<Values>((before?.arguments ?? {}) as Values);
  const isRight = useSignal(true);
  const tried = useSignal(false);
  // A copy gets a time of its own; a rule that repeats is worth copying.
  const when = useSignal<When>({
    kind: before?.cron ? "cron" : "once",
    at: isEdit ? (before?.at ?? "") : "",
    cron: before?.cron ?? "",
  });
  const fault = useSignal<Error | null>(null);
  const input = when.value.kind === "once" ? { at: when.value.at.trim() } : { cron: when.value.cron.trim() };
  const { preview, looking, zone, offset, look } = usePreview(input);
  const chosen = tools.value?.data.find((one) => one.name === tool.value);
  const commands = chosen ? commandsOf(chosen) : [];
  const problems = chosen ? problemsOf(callSchema(chosen.parameters, commands, given.value), given.value) : NONE;
  const hasTime = !!("at" in input ? input.at : input.cron) && !preview?.problem && !looking;
  useEffect(() => {
    tried.value = false;
  }, [tool.value, tried]);
  const save = async () => {
    tried.value = true;
    fault.value = null;
    if (problems.size) return;
    // One that is counted from now counts from now, not from when it was written.
    const at = "at" in input ? (await look())?.at : undefined;
    if ("at" in input && !at) return;
    const body = {
      tool: tool.value,
      arguments: given.value,
      ...input,
      ...(at ? { at } : {}),
      ...(before?.maid ? { maid: before.maid } : {}),
    };
    await (isEdit && before ? api(schedulePath(before.id), { method: "PUT", body }) : api("/v1/schedules", { body }));
    showToast(t.saved);
    onClose();
  };
  return (
    <Dialog
      title={isEdit ? t.editTitle : t.newTitle}
      side
      onClose={onClose}
      footer={
        <>
          {tried.value && problems.size > 0 && (
            <span class="problem grow" role="alert">
              {t.fillRequired}
            </span>
          )}
          <Button onClick={onClose}>{t.cancelForm}</Button>
          <Button
            kind="primary"
            disabled={!tool.value || !hasTime || !isRight.value}
            onFault={(error) => (fault.value = error as Error)}
            onClick={save}
          >
            {t.save}
          </Button>
        </>
      }
    >
      {fault.value && <Fault title={t.failed} error={fault.value} />}
      {tools.state === "fault" && <Fault error={tools.error} retry={tools.reload} />}
      <WhenField
        when={when.value}
        onWhen={(next) => (when.value = next)}
        preview={preview}
        looking={looking}
        zone={zone}
        offset={offset}
      />
      <Select
        label={t.tool}
        required
        value={tool.value}
        onInput={(name) => {
          tool.value = name;
          given.value = {};
        }}
        options={[
          { value: "", name: t.toolPick },
          ...(tools.value?.data ?? (tool.value ? [{ name: tool.value }] : [])).map((one) => ({
            value: one.name,
            name: one.name,
            given: true,
          })),
        ]}
      />
      {JSON.stringify(given.value).includes(MASK) && <Notice tone="warn">{t.masked}</Notice>}
      {chosen ? (
        <ArgumentsField
          key={tool.value}
          schema={chosen.parameters}
          commands={commands}
          help={helpOf(chosen)}
          value={given.value}
          problems={tried.value ? problems : NONE}
          onValue={(value, right) => {
            given.value = value;
            isRight.value = right;
          }}
        />
      ) : null}
    </Dialog>
  );
}

/** Install a plugin: bring it here, look at all that it holds and would run, and only then allow it. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AccessChoice, StagedPluginResponse } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Switch, TextField } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Fault, Notice } from "../../ui/state";
import { titleOf } from "./translation";
import { StagedView } from "./staged";
import { AccessSelect } from "./trust";
import { pluginWords } from "./words-plugin";

export function Install({ onClose, onInstalled }: { onClose: () => void; onInstalled: () => void }) {
  const t = pluginWords();
  const staged = useSignal<StagedPluginResponse | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const reads = useSignal(false);
  const access = useSignal<AccessChoice>("declared");
  const held = useRef<StagedPluginResponse | null>(null);
  held.current = staged.value;
  // What was brought here and not allowed is thrown away with the dialog.
  useEffect(
    () => () => {
      if (held.current) void dropStaged(held.current);
    },
    [],
  );
  const take = async (request: { body: unknown; headers?: Record<string, string> }) => {
    fault.value = null;
    reads.value = false;
    const one = await api<StagedPluginResponse>("/v1/plugins/install", { method: "POST", ...request });
    access.value = one.review?.access ?? "declared";
    staged.value = one;
  };
  const allow = async () => {
    const one = staged.value!;
    await api(`/v1/plugins/install/${encodeURIComponent(one.staged)}/allow`, {
      body: { fingerprint: one.review?.fingerprint ?? "", confirm_read: reads.value, access: access.value },
    });
    staged.value = held.current = null;
    showToast(t.installed(revealHidden(titleOf(one))));
    onInstalled();
    onClose();
  };
  const again = async () => {
    const one = staged.value;
    staged.value = held.current = null;
    if (one) await dropStaged(one);
  };
  const failed = (error: unknown) => (fault.value = error as ApiError);
  const cannot = staged.value !== null && (!staged.value.review || staged.value.problems.some((one) => !one.warning));
  return (
    <Dialog
      title={t.installTitle}
      onClose={onClose}
      footer={
        staged.value && (
          <>
            <Button onClick={again}>{t.another}</Button>
            <Button kind="primary" sign="approvals" disabled={cannot} onClick={allow} onFault={failed}>
              {t.allowInstall}
            </Button>
          </>
        )
      }
    >
      {staged.value ? (
        <>
          <Notice tone={cannot ? "bad" : "warn"}>{cannot ? t.cannot : t.nothingRan}</Notice>
          <StagedView staged={staged.value} access={access.value} />
          {staged.value.review && (
            <AccessSelect
              review={staged.value.review}
              access={access.value}
              onChoose={(choice) => (access.value = choice)}
            />
          )}
          {staged.value.review?.claims_read && (
            <Switch
              label={t.confirmRead}
              help={t.confirmReadHelp}
              on={reads.value}
              onSwitch={(on) => (reads.value = on)}
            />
          )}
        </>
      ) : (
        <Choose take={take} failed={failed} />
      )}
      {fault.value && <Fault error={fault.value} title={t.cannot} />}
    </Dialog>
  );
}

async function dropStaged(staged: StagedPluginResponse): Promise<void> {
  await api(`/v1/plugins/install/${encodeURIComponent(staged.staged)}`, { method: "DELETE" }).catch(() => undefined);
}

function Choose({
  take,
  failed,
}: {
  take: (request: { body: unknown; headers?: Record<string, string> }) => Promise<void>;
  failed: (error: unknown) => void;
}) {
  const t = pluginWords();
  const source = useSignal("");
  const over = useSignal(false);
  const busy = useSignal(false);
  const file = useRef<HTMLInputElement>(null);
  const upload = async (zip: File | undefined) => {
    if (!zip) return;
    busy.value = true;
    await take({ body: zip, headers: { "Content-Type": "application/zip" } }).catch(failed);
    busy.value = false;
  };
  const look = () => take({ body: { source: source.value.trim() } });
  return (
    <>
      <button
        type="button"
        class={`tools-drop${over.value ? " over" : ""}`}
        disabled={busy.value}
        onClick={() => file.current?.click()}
        onDragOver={(event) => {
          event.preventDefault();
          over.value = true;
        }}
        onDragLeave={() => (over.value = false)}
        onDrop={(event) => {
          event.preventDefault();
          over.value = false;
          void upload(event.dataTransfer?.files[0]);
        }}
      >
        <Icon sign="upload" size={24} />
        <strong>{busy.value ? t.inspecting : t.chooseZip}</strong>
        <span class="faint">{t.dropZip}</span>
      </button>
      <input
        ref={file}
        type="file"
        accept=".zip,application/zip"
        hidden
        aria-label={t.chooseZip}
        onChange={(event) => {
          void upload(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      <form
        class="tools-source"
        onSubmit={(event) => {
          event.preventDefault();
          if (source.value.trim()) look().catch(failed);
        }}
      >
        <div class="grow">
          <TextField
            label={t.fromSource}
            value={source.value}
            onInput={(text) => (source.value = text)}
            help={t.sourceHelp}
            placeholder={t.sourceExample}
            autocomplete="off"
          />
        </div>
        <Button disabled={!source.value.trim()} onClick={look} onFault={failed}>
          {t.inspect}
        </Button>
      </form>
      <p class="quiet">
        {t.mcpToo} <a href="/settings?tab=mcp&add=1">{t.mcpAdd}</a>
      </p>
    </>
  );
}

/** A one-time link that signs another browser in, as a QR code for a phone: with the key of this session, or with another
 * key that may do less. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { KeySummary, LoginLinks, SettingsDetail } from "toolyard-client";
import { api } from "../../lib/api";
import { formatDuration, now } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { scopeWord } from "../../lib/scope";
import { useEvent } from "../../lib/use-event";
import { Button } from "../../ui/button";
import { Copyable } from "../../ui/copyable";
import { Dialog } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { Fault, Loading, Notice } from "../../ui/state";
import { phoneWords } from "./words-phone";

const REACHABLE = "--host 0.0.0.0 --allow-remote --tls-self-signed";

export function PhoneSignIn({ keys, onClose }: { keys: readonly KeySummary[]; onClose: () => void }) {
  const t = phoneWords();
  const key = useSignal("");
  const links = useSignal<(LoginLinks & { until: number }) | null>(null);
  const fault = useSignal<Error | null>(null);
  const settings = useResource<SettingsDetail>("/v1/settings");
  const make = useEvent(async () => {
    fault.value = null;
    try {
      const made = await api<LoginLinks>("/v1/login-links", { body: { key: key.value } });
      links.value = { ...made, until: Date.now() + made.expires_in * 1000 };
    } catch (error) {
      fault.value = error as Error;
    }
  });
  useEffect(() => {
    void make();
  }, [key.value, make]);
  const seconds = links.value ? Math.max(0, Math.floor((links.value.until - now.value) / 1000)) : 0;
  return (
    <Dialog
      title={t.signIn}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          {t.done}
        </Button>
      }
    >
      {fault.value ? (
        <Fault error={fault.value} retry={() => void make()} />
      ) : !links.value ? (
        <Loading rows={3} />
      ) : links.value.remote_qr ? (
        <>
          <div class="settings-qr">
            {seconds > 0 ? (
              <QrCode rows={links.value.remote_qr} label={t.code} />
            ) : (
              <Notice tone="warn">{t.expired}</Notice>
            )}
            <p class="quiet">{t.scan}</p>
            <p class="row faint tabular">
              {seconds > 0 && t.validFor(formatDuration(seconds))}
              <Button kind="quiet" sign="reload" onClick={make}>
                {t.newCode}
              </Button>
            </p>
          </div>
          {keys.length > 0 && (
            <Select
              label={t.as}
              value={key.value}
              onInput={(value) => (key.value = value)}
              options={[
                { value: "", name: t.sameKey },
                ...keys.map(({ id, name, scopes }) => ({
                  value: id,
                  name: `${name} (${scopes.map(scopeWord).join(", ")})`,
                })),
              ]}
            />
          )}
          <div class="field">
            <strong>{t.link}</strong>
            <Copyable text={links.value.remote_url!} />
          </div>
        </>
      ) : (
        <>
          <Notice tone="warn">
            <strong>{t.noPhone}</strong>
            <p>{t.noPhoneText}</p>
            {settings.value && <Copyable text={`${settings.value.restart_command} ${REACHABLE}`} />}
          </Notice>
          <p>{t.here}</p>
          <Copyable text={links.value.url} />
        </>
      )}
    </Dialog>
  );
}

/** Dark on light in every theme: scanners expect it. */
function QrCode({ rows, label }: { rows: readonly string[]; label: string }) {
  const dark = rows.flatMap((row, y) =>
    [...row.matchAll(/1+/g)].map((run) => `M${run.index} ${y}h${run[0].length}v1h-${run[0].length}z`),
  );
  return (
    <svg viewBox={`0 0 ${rows.length} ${rows.length}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width="100%" height="100%" fill="#fff" />
      <path d={dark.join("")} fill="#000" />
    </svg>
  );
}

/** The console as an app: installed from here, or why not and what to do. */
import { getInstallability, install } from "../../lib/installation";
import { Button } from "../../ui/button";
import { Copyable } from "../../ui/copyable";
import { phoneWords } from "./words-phone";

export function Install() {
  const t = phoneWords();
  const state = getInstallability();
  const text = {
    installed: t.installed,
    offered: t.offered,
    insecure: t.insecure,
    refused: t.refused,
    ios: t.ios,
    "by-hand": t.byHand,
  }[state];
  return (
    <section class="card row settings-install">
      <img src="/console/icon.svg" width="40" height="40" alt="" />
      <div class="grow stack">
        <h2>{t.title}</h2>
        <p class="quiet">{text}</p>
        {(state === "insecure" || state === "refused") && (
          <p class="row">
            {t.guide} <Copyable text="toolyard help tls" />
          </p>
        )}
      </div>
      {state === "offered" && (
        <Button kind="primary" onClick={install}>
          {t.install}
        </Button>
      )}
    </section>
  );
}

/** What was saved but takes effect only when the server starts again, and how to start it. */
import type { SettingsDetail } from "toolyard-client";
import { language, pickText } from "../../lib/language";
import { Code } from "../../ui/code";
import { Notice } from "../../ui/state";
import { words } from "./words";

export function RestartBanner({ all }: { all: SettingsDetail | null }) {
  const t = words();
  const waiting = all?.settings.filter((one) => !one.holds) ?? [];
  if (!all || !waiting.length) return null;
  const names = waiting.map((one) => pickText(one.title, one.title_zh));
  return (
    <Notice tone="warn">
      <strong>{t.restartNeeded(waiting.length)}</strong>
      <ul class="settings-waiting">
        {names.map((name, at) => (
          <li key={name}>
            <a href={`/settings?find=${encodeURIComponent(waiting[at]!.name)}`}>{name}</a>
          </li>
        ))}
      </ul>
      <details class="fold">
        <summary>{t.howToRestart}</summary>
        <p>{t.restartCommand}</p>
        <Code text={all.restart_command} label={t.restartLabel} />
        <p>
          {t.restartService}{" "}
          <a
            href={`/docs/services?lang=${language.value === "zh" ? "zh" : "en"}#restarts-and-upgrades`}
            target="_blank"
            rel="noopener"
          >
            {t.docs}
          </a>
        </p>
      </details>
    </Notice>
  );
}

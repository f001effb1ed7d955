/** The small signs of a tool: its state, its kind and risk, its star, and what it did today. */
import type { ToolCount } from "toolyard-client";
import { formatPercent } from "../../lib/language";
import { Chip, StateChip, type Tone } from "../../ui/chip";
import { Icon } from "../../ui/icon";
import { toggleFavourite, favourites } from "./catalogue-data";
import { pluginStateWord, words } from "./words";

const OWN: Record<string, Tone> = {
  changed: "warn",
  broken: "bad",
  duplicate: "plain",
  shadowed: "bad",
  unsupported: "plain",
};

export function PluginState({ state }: { state: string }) {
  const tone = OWN[state];
  return tone ? <Chip tone={tone}>{pluginStateWord(state)}</Chip> : <StateChip state={state} />;
}

export function Star({ name, title }: { name: string; title: string }) {
  const on = favourites.value.has(name);
  const label = words().addFavourite(title);
  return (
    <button
      type="button"
      class="tools-star"
      aria-pressed={on}
      aria-label={label}
      title={label}
      data-given
      onClick={() => toggleFavourite(name)}
    >
      <Icon sign="star" size={18} />
    </button>
  );
}

export function DayStats({ stats }: { stats: (ToolCount & { is_capped?: boolean }) | null }) {
  const t = words();
  if (!stats || !stats.calls) return <span class="faint">{t.quiet}</span>;
  const rate = stats.errors / stats.calls;
  return (
    <span class="faint tabular" title={t.day}>
      {stats.is_capped ? t.callsOrMore(stats.calls) : t.calls(stats.calls)}
      {stats.errors > 0 && (
        <span class={rate >= 0.2 ? "tools-errors bad" : "tools-errors"}> · {t.errors(formatPercent(rate))}</span>
      )}
    </span>
  );
}

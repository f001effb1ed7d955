/** The presets, to begin a provider with one press. */
import { Button } from "../../ui/button";
import { presetName, PRESETS, type Preset } from "./presets";
import { presetOf } from "./provider";
import { words } from "./words";

export function PresetPicker({ url, onPick }: { url: string; onPick: (preset: Preset | null) => void }) {
  const t = words();
  const chosen = presetOf(url);
  return (
    <div class="providers-presets" role="group" aria-label={t.presets}>
      {PRESETS.map((one) => (
        <Button key={one.id} pressed={chosen === one} onClick={() => onPick(one)}>
          <span data-given>{presetName(one)}</span>
        </Button>
      ))}
      <Button pressed={url !== "" && !chosen} onClick={() => onPick(null)}>
        {t.other}
      </Button>
    </div>
  );
}

/** What a preset needs to be known: where its keys are, and its address for other countries. */
export function PresetNotes({ preset, url, onUrl }: { preset: Preset; url: string; onUrl: (url: string) => void }) {
  const t = words();
  const other = url === preset.abroad ? preset.url : preset.abroad;
  return (
    <div class="row faint providers-notes">
      {preset.keys && (
        <a href={preset.keys} target="_blank" rel="noopener noreferrer">
          {t.getKey}
        </a>
      )}
      {other && (
        <button type="button" class="link" onClick={() => onUrl(other)}>
          {other === preset.abroad ? t.abroad : t.inChina}
        </button>
      )}
    </div>
  );
}

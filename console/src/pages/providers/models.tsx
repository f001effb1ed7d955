/** The models of one provider: find one, and make it the default. */
import { useSignal } from "@preact/signals";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Search } from "../../ui/field";
import { modelId } from "./provider";
import { words } from "./words";

const SHOWN = 50;

export function Models({
  provider,
  models,
  chosen,
  onChoose,
}: {
  provider: string;
  models: readonly string[];
  chosen: string | null;
  onChoose: (id: string) => Promise<void>;
}) {
  const t = words();
  const find = useSignal("");
  const matching = models.filter((one) => one.toLowerCase().includes(find.value.toLowerCase()));
  const isChosen = (one: string) => chosen === modelId(provider, one) || chosen === one;
  return (
    <details class="fold providers-models">
      <summary>{t.models(models.length)}</summary>
      {models.length > 8 && <Search label={t.findModel} value={find.value} onInput={(value) => (find.value = value)} />}
      <ul>
        {matching.slice(0, SHOWN).map((one) => (
          <li key={one}>
            <code class="grow" data-given>
              {revealHidden(one)}
            </code>
            {isChosen(one) ? (
              <Chip tone="good">{t.isDefault}</Chip>
            ) : (
              <Button kind="quiet" onClick={() => onChoose(modelId(provider, one))}>
                {t.makeDefault}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {matching.length > SHOWN && <p class="faint">{t.moreFind(matching.length - SHOWN)}</p>}
      {!matching.length && <p class="faint">{t.noMatch}</p>}
    </details>
  );
}

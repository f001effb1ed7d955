/** The licence of Toolyard and those of the third-party packages in the console; the texts are loaded with this. */
import { useSignal } from "@preact/signals";
import { useResource } from "../../lib/resource";
import { Code } from "../../ui/code";
import { Fault, Loading } from "../../ui/state";
import { words } from "./words";

interface Licensed {
  license: string;
  text: number; // its place in `texts`
}
interface LicenseFile extends Licensed {
  components: (Licensed & { name: string; version: string })[];
  texts: string[];
}

export function Licenses() {
  const t = words();
  const file = useResource<LicenseFile>("/console/licenses.json");
  if (file.state === "fault" && !file.value) return <Fault error={file.error} retry={file.reload} />;
  if (!file.value) return <Loading rows={3} />;
  const { license, text, components, texts } = file.value;
  return (
    <section class="card stack">
      <h2>{t.licences}</h2>
      <License title="Toolyard" license={license} text={texts[text]!} />
      <h3>{t.thirdParty(components.length)}</h3>
      <ul class="settings-licenses">
        {components.map((one) => (
          <li key={`${one.name} ${one.version}`}>
            <License title={`${one.name} ${one.version}`} license={one.license} text={texts[one.text]!} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A name with its licence; the text, often long, is only in the page while it is open. */
function License({ title, license, text }: { title: string; license: string; text: string }) {
  const open = useSignal(false);
  return (
    <details class="fold" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary data-given>
        <span class="grow">{title}</span>
        <span class="faint">{license}</span>
      </summary>
      {open.value && (
        <div data-given>
          <Code tall label={license} text={text} />
        </div>
      )}
    </details>
  );
}

/** README and CHANGELOG of a plugin, drawn by the server and cleaned here once more. */
import type { PluginDetail } from "toolyard-client";
import { queryParam, setQuery } from "../../lib/router";
import { Rendered } from "../../ui/rendered";
import { Empty } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { words } from "./words";
import { pluginWords } from "./words-plugin";

export function Docs({ plugin }: { plugin: PluginDetail }) {
  const t = pluginWords();
  const docs = [...plugin.docs].sort(
    (one, other) => Number(/^readme/i.test(other.name)) - Number(/^readme/i.test(one.name)),
  );
  const first = docs[0];
  if (!first)
    return (
      <Empty sign="file" title={t.noDocs}>
        {t.noDocsText}
      </Empty>
    );
  const open = docs.find((one) => one.name === queryParam("doc")) ?? first;
  return (
    <div class="stack">
      {docs.length > 1 && (
        <div data-given>
          <Tabs
            label={words().docs}
            tabs={docs.map((one) => ({ id: one.name, name: one.name }))}
            open={open.name}
            onOpen={(doc) => setQuery({ doc })}
          />
        </div>
      )}
      <article class="card tools-doc">
        <Rendered key={open.name} html={open.html} />
      </article>
    </div>
  );
}

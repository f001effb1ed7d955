/** Asks before a plugin is removed. */
import { api } from "../../lib/api";
import { go, place } from "../../lib/router";
import { toast } from "../../lib/toast";
import { visible } from "../../lib/visible";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Handle } from "../../ui/handle";
import { pluginPath, removing } from "./plugin-actions";
import { titleOf } from "./spoken";
import { pluginWords } from "./words-plugin";

export function Remove() {
  const t = pluginWords();
  const asked = removing.value;
  if (!asked) return null;
  const close = () => (removing.value = null);
  const name = visible(titleOf(asked.plugin));
  const remove = async () => {
    await api(pluginPath(asked.plugin), { method: "DELETE" });
    toast(t.removedNow(name));
    close();
    if (place.value.name) go("/tools");
    else asked.after();
  };
  return (
    <Dialog
      title={t.removeTitle(name)}
      onClose={close}
      footer={
        <>
          <Button onClick={close}>{t.cancel}</Button>
          <Button kind="danger" sign="trash" onClick={remove}>
            {t.removeIt}
          </Button>
        </>
      }
    >
      <p>{t.removeText}</p>
      <Handle text={asked.plugin.folder} />
    </Dialog>
  );
}

/** Asks before a plugin is removed. */
import { api } from "../../lib/api";
import { navigate, route } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Copyable } from "../../ui/copyable";
import { pluginPath, removing } from "./plugin-actions";
import { titleOf } from "./translation";
import { pluginWords } from "./words-plugin";

export function Remove() {
  const t = pluginWords();
  const pending = removing.value;
  if (!pending) return null;
  const close = () => (removing.value = null);
  const name = revealHidden(titleOf(pending.plugin));
  const remove = async () => {
    await api(pluginPath(pending.plugin), { method: "DELETE" });
    showToast(t.removedNow(name));
    close();
    if (route.value.name) navigate("/tools");
    else pending.after();
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
      <Copyable text={pending.plugin.folder} />
    </Dialog>
  );
}

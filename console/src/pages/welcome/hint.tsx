/** For the empty chat: a way to the first steps, while nobody has gone or dismissed them. */
import "./style.css";
import { hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { Icon } from "../../ui/icon";
import type { Status } from "./types";
import { words } from "./words";

export function FirstRunHint() {
  const t = words();
  const status = useResource<Status>(hasScope("admin") ? "/v1/status" : null);
  if (!status.value?.first_run) return null;
  return (
    <a class="welcome-hint" href="/welcome">
      <Icon sign="info" size={18} />
      <span class="grow">{t.hint}</span>
      <strong>{t.hintDo}</strong>
      <Icon sign="right" size={16} />
    </a>
  );
}

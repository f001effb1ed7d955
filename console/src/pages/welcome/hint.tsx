/** For the empty chat: a way to the first steps, while nobody has gone or dismissed them, and to go on with them. */
import type { Status } from "toolyard-client";
import "./style.css";
import { hasScope } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { Icon } from "../../ui/icon";
import { placeOf, readKept } from "./types";
import { words } from "./words";

export function FirstRunHint() {
  const t = words();
  const status = useResource<Status>(hasScope("admin") ? "/v1/status" : null);
  if (!status.value) return null;
  const { at, done } = readKept(placeOf(status.value));
  const isBegun = at > 1 || done.length > 0;
  if (!status.value.first_run && !isBegun) return null;
  return (
    <a class="welcome-hint" href="/welcome">
      <Icon sign="info" size={18} />
      <span class="grow">{isBegun ? t.hintOn : t.hint}</span>
      <strong>{isBegun ? t.hintGoOn : t.hintDo}</strong>
      <Icon sign="right" size={16} />
    </a>
  );
}

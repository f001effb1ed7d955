/** The browser's own calendar, for those who would rather point than write. Its field stays out of sight: the time is
 * written in one place only. */
import { useRef } from "preact/hooks";
import { IconButton } from "../../ui/button";
import { scheduleWords as words } from "./words";

export function Picker({ at, onPick }: { at: string; onPick: (text: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <span class="sch-pick">
      <IconButton label={words().pick} sign="schedule" onClick={() => field.current?.showPicker()} />
      <input
        ref={field}
        type="datetime-local"
        tabIndex={-1}
        aria-hidden="true"
        value={at.slice(0, 16)}
        onInput={(event) => {
          if (event.currentTarget.value) onPick(event.currentTarget.value.replace("T", "-").slice(0, 16));
        }}
      />
    </span>
  );
}

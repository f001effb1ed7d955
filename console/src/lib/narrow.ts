/** True while the window is as narrow as a phone: the width at which the rail becomes a bar, as in `shell.css`. */
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 899px)");
export const isNarrow = signal(query.matches);
query.addEventListener("change", (event) => (isNarrow.value = event.matches));

/** The toasts, over the top bar: what people press is below. A dialog has its own, since nothing behind it can be
 * pressed or heard. */
import { dictionary } from "../lib/language";
import { closeToast, toasts } from "../lib/toast";
import { IconButton } from "./button";
import { ErrorText } from "./state";

const words = dictionary({ dismiss: "Dismiss" }, { dismiss: "关闭提示" });

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.tone}`}>
          <span class="grow">{one.error ? <ErrorText error={one.error} /> : one.text}</span>
          {one.tone === "bad" && <IconButton label={words().dismiss} sign="close" onClick={() => closeToast(one)} />}
        </div>
      ))}
    </div>
  );
}

/** How the console looks, in this browser. */
import { language, speak } from "../../lib/language";
import { theme, wear, type Theme } from "../../lib/theme";
import { Select } from "../../ui/field";
import { words } from "./words";

export function Looks() {
  const t = words();
  return (
    <section class="card settings-looks">
      <Select label={t.theme} value={theme.value} onInput={(value) => wear(value as Theme)} options={[{ value: "system", name: t.system }, { value: "light", name: t.light }, { value: "dark", name: t.dark }]} />
      <Select label={t.language} value={language.value === "zh" ? "zh" : "en"} onInput={(value) => speak(value as "en" | "zh")} options={[{ value: "en", name: "English" }, { value: "zh", name: "中文" }]} />
    </section>
  );
}

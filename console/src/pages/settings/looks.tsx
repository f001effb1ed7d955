/** How the console and the replies in it look, in this browser. */
import { language, speak } from "../../lib/language";
import { diagrams, elsewhere, showDiagrams, showElsewhere, type Diagrams, type Elsewhere } from "../../lib/rendering";
import { theme, wear, type Theme } from "../../lib/theme";
import { Select } from "../../ui/field";
import { words } from "./words";

export function Looks() {
  const t = words();
  return (
    <section class="card settings-looks">
      <Select
        label={t.theme}
        value={theme.value}
        onInput={(value) => wear(value as Theme)}
        options={[
          { value: "system", name: t.system },
          { value: "light", name: t.light },
          { value: "dark", name: t.dark },
        ]}
      />
      <Select
        label={t.language}
        value={language.value === "zh" ? "zh" : "en"}
        onInput={(value) => speak(value as "en" | "zh")}
        options={[
          { value: "en", name: "English" },
          { value: "zh", name: "中文" },
        ]}
      />
      <Select
        label={t.diagrams}
        value={diagrams.value}
        onInput={(value) => showDiagrams(value as Diagrams)}
        options={[
          { value: "drawn", name: t.drawn },
          { value: "source", name: t.asSource },
        ]}
      />
      <Select
        label={t.elsewhere}
        value={elsewhere.value}
        onInput={(value) => showElsewhere(value as Elsewhere)}
        options={[
          { value: "offered", name: t.onPress },
          { value: "never", name: t.never },
        ]}
      />
    </section>
  );
}

/** The appearance of the console and of replies, in this browser. */
import { language, setLanguage } from "../../lib/language";
import {
  diagrams,
  remoteImages,
  setDiagrams,
  setRemoteImages,
  type Diagrams,
  type RemoteImages,
} from "../../lib/display-options";
import { theme, setTheme, type Theme } from "../../lib/theme";
import { Select } from "../../ui/field";
import { Install } from "./install";
import { words } from "./words";

export function Appearance() {
  const t = words();
  return (
    <>
      <section class="card settings-looks">
        <Select
          label={t.theme}
          value={theme.value}
          onInput={(value) => setTheme(value as Theme)}
          options={[
            { value: "system", name: t.system },
            { value: "light", name: t.light },
            { value: "dark", name: t.dark },
          ]}
        />
        <Select
          label={t.language}
          value={language.value === "zh" ? "zh" : "en"}
          onInput={(value) => setLanguage(value as "en" | "zh")}
          options={[
            { value: "en", name: "English" },
            { value: "zh", name: "中文" },
          ]}
        />
        <Select
          label={t.diagrams}
          value={diagrams.value}
          onInput={(value) => setDiagrams(value as Diagrams)}
          options={[
            { value: "drawn", name: t.drawn },
            { value: "source", name: t.asSource },
          ]}
        />
        <Select
          label={t.foreignImages}
          value={remoteImages.value}
          onInput={(value) => setRemoteImages(value as RemoteImages)}
          options={[
            { value: "offered", name: t.onPress },
            { value: "never", name: t.never },
          ]}
        />
      </section>
      <Install />
    </>
  );
}

/** The page of all components: `/style` while the sources are served, with every look side by side. One look alone is
 * `/style?theme=dark&lang=zh`; it is also what the pictures of the tests show. */
import "../src/styles/tokens.css";
import "../src/styles/base.css";
import "../src/styles/ui.css";
import "../src/styles/shell.css";
import "../src/styles/forced.css";
import "./style.css";
import { render } from "preact";
import { setTheme } from "../src/lib/theme";
import { Components } from "./components";
import { locale } from "../src/lib/language";

const WIDTHS = [1440, 768, 390];
const LOOKS = ["light", "dark"].flatMap((theme) => ["en", "zh"].map((lang) => `theme=${theme}&lang=${lang}`));

function Overview() {
  return (
    <main>
      {WIDTHS.map((width) => (
        <section key={width}>
          <h2>{width} px</h2>
          <div class="style-frames">
            {LOOKS.map((look) => (
              <iframe key={look} title={`${width} px, ${look}`} src={`?${look}`} width={width} height={900} />
            ))}
          </div>
        </section>
      ))}
    </main>
  );
}

const theme = new URLSearchParams(location.search).get("theme");
if (theme === "light" || theme === "dark") setTheme(theme);
document.documentElement.lang = locale();
render(theme ? <Components /> : <Overview />, document.getElementById("app")!);

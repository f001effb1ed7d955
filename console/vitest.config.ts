import { defineConfig } from "vitest/config";

/** Tests of the parts that need no page. What a browser does with the pages is tested in `tests/console`. */
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { include: ["src/**/*.test.ts"], setupFiles: ["vitest.setup.ts"] },
});

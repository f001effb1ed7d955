import eslint from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

const toGlobals = (names) => Object.fromEntries(names.map((name) => [name, "readonly"]));

export default defineConfig(
  { ignores: ["node_modules"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  eslint.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [typescript.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "no-restricted-properties": [
        "error",
        { object: "navigator", property: "clipboard", message: "Use copyText: it works without HTTPS too." },
      ],
    },
  },
  { files: ["src/lib/copy.ts"], rules: { "no-restricted-properties": "off" } },
  { files: ["scripts/*.mjs"], languageOptions: { globals: toGlobals(["console", "process"]) } },
  {
    // What these two scripts use of a browser: anything else would be a misspelt name.
    files: ["public/**/*.js"],
    languageOptions: {
      globals: toGlobals([
        "Element",
        "addEventListener",
        "document",
        "fetch",
        "getComputedStyle",
        "localStorage",
        "navigator",
        "parent",
        "window",
      ]),
    },
  },
);

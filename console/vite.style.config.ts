import { defineConfig, mergeConfig } from "vite";
import shipped from "./vite.config.ts";

/** The page of all components, for the pictures of the tests: it is not part of the shipped console. */
export default mergeConfig(
  shipped,
  defineConfig({
    build: {
      copyPublicDir: false,
      outDir: "../build/style",
      manifest: false,
      rolldownOptions: { input: "style.html" },
    },
  }),
);

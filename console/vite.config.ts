import { defineConfig, type Plugin } from "vite";

/** Every browser that runs the console reads woff2: the other forms of KaTeX's fonts stay out of the package. */
const onlyWoff2: Plugin = {
  name: "only-woff2",
  enforce: "pre",
  transform: (code, id) =>
    id.endsWith("katex.min.css") || id.endsWith("katex.css")
      ? code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)/g, "")
      : null,
};

/** The name of a chunk, without a hash: it stays when its text changes, and so do the texts that name it. The server puts
 * a version into the addresses instead. Parts of a page begin with the name of the page. */
function nameChunk({
  name,
  facadeModuleId,
  moduleIds,
}: {
  name: string;
  facadeModuleId?: string | null;
  moduleIds: string[];
}) {
  const main = facadeModuleId ?? moduleIds.at(-1) ?? "";
  const [, page, part] = /\/src\/pages\/(\w+)\/([\w-]+)\.tsx?$/.exec(main) ?? [];
  return `assets/${page && part ? (part === "index" ? page : `${page}-${part}`) : name}.js`;
}

/** The built console is committed: running Toolyard needs no Node. `npm run build` writes it, `seal.mjs` hashes it. */
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  base: "./", // the server puts its own address in front: see web/routes/admin/pages.py
  plugins: [onlyWoff2],
  build: {
    outDir: "../src/toolyard/web/console",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    manifest: "chunks.json", // for seal.mjs
    cssCodeSplit: false, // one order of rules, whichever page comes first
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: "index.html", "service-worker": "src/service-worker/index.ts" },
      output: {
        // A service worker keeps its address: under another one it would be another worker.
        entryFileNames: ({ name }) => (name === "service-worker" ? "[name].js" : "assets/[name].js"),
        chunkFileNames: nameChunk,
        assetFileNames: "assets/[name][extname]",
        minifyInternalExports: false, // short ones would change in every chunk whenever one of them gets another member
        // What most pages need comes as one file instead of a dozen small ones.
        codeSplitting: {
          groups: [{ name: "common", test: /src\/(lib|ui)\/(?!rendered|schema|patch)[^/]+\.tsx?$/, minShareCount: 3 }],
        },
      },
    },
  },
  server: {
    proxy: { "^/(v1|login|logout|ws|docs|healthz|readyz|metrics)": { target: "http://127.0.0.1:6005", ws: true } },
  },
});

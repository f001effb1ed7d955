// Copies what is used as it comes, and writes `build.json`: the hash of all sources but tests, so that a test can tell
// whether the built files belong to them, the hash of all built files, and the scripts that each page loads first.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(root, "../src/toolyard/web/console");
const sha = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const walk = (folder) =>
  readdirSync(folder)
    .sort()
    .flatMap((name) => {
      const path = join(folder, name);
      return statSync(path).isDirectory() ? walk(path) : [path];
    });

mkdirSync(join(out, "draw"), { recursive: true });
cpSync(join(root, "node_modules/mermaid/dist/mermaid.min.js"), join(out, "draw/mermaid.min.js"));

const isBuilt = (file) => !file.endsWith(".test.ts");
const sources = [
  ...walk(join(root, "src")).filter(isBuilt),
  ...walk(join(root, "public")),
  ...walk(join(root, "licenses")),
  ...walk(join(root, "scripts")),
  ...["index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json"].map((name) =>
    join(root, name),
  ),
];
/** The hash of files: of their names from `base`, and of what is in each. */
function hashAll(base, files) {
  const total = createHash("sha256");
  for (const [name, file] of files
    .map((file) => [relative(base, file).split(sep).join("/"), file])
    .sort(([a], [b]) => (a < b ? -1 : 1)))
    total.update(`${name}\0${sha(file)}\n`);
  return total.digest("hex");
}

const chunks = JSON.parse(readFileSync(join(out, "chunks.json"), "utf-8"));
rmSync(join(out, "chunks.json"));
const withImports = (name) => [chunks[name].file, ...(chunks[name].imports ?? []).flatMap(withImports)];
const pages = Object.fromEntries(
  Object.keys(chunks)
    .map((name) => [/^src\/pages\/(\w+)\/index\.tsx$/.exec(name)?.[1], name])
    .filter(([page]) => page)
    .map(([page, name]) => [page, [...new Set([...withImports("index.html"), ...withImports(name)])].sort()]),
);
rmSync(join(out, "build.json"), { force: true });
const build = { sources: hashAll(root, sources), files: hashAll(out, walk(out)), pages };
writeFileSync(join(out, "build.json"), `${JSON.stringify(build, null, 1)}\n`);

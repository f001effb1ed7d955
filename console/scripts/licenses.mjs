// Writes the licences of the third-party packages in the built console, for the About page (`public/licenses.json`) and
// for the package of Toolyard (`THIRD-PARTY-LICENSES.txt`). The packages are those that the lock file brings for the
// console's dependencies, and those that the source map of Mermaid names: Mermaid comes built, with versions of its own
// choice and packages that the lock file does not know. A package without a licence or its text stops the build: both
// can be given in `licenses/`.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path) => readFileSync(join(root, path), "utf8");
const lock = JSON.parse(read("package-lock.json")).packages;
const declared = JSON.parse(read("licenses/declared.json"));

/** The place of a dependency in the lock file: below the package that needs it, or in a folder further up. */
function findPlace(from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const place = `${folder && `${folder}/`}node_modules/${name}`;
    if (lock[place]) return place;
    if (!folder) throw new Error(`${from || "the console"} needs ${name}, which the lock file does not have`);
  }
}

/** The places of packages and of all that they depend on, without packages that have nothing but types. */
function findAll(names) {
  const places = new Set();
  const visit = (from, name) => {
    const place = findPlace(from, name);
    if (name.startsWith("@types/") || places.has(place)) return;
    places.add(place);
    Object.keys(lock[place].dependencies ?? {}).forEach((needed) => visit(place, needed));
  };
  names.forEach((name) => visit("", name));
  return [...places];
}

const nameOf = (place) => place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);

/** The packages in Mermaid's built file, as [name, version]: its source map has the path of every file, or quotes it. */
function listBuiltIntoMermaid() {
  const { sources, sourcesContent } = JSON.parse(read("node_modules/mermaid/dist/mermaid.min.js.map"));
  const packages = [...sources, ...sourcesContent]
    .flatMap((text) => [...text.matchAll(/\.pnpm\/(@?[^/@]+)@([^/_(]+)[^/]*\/node_modules\//g)])
    .map(([, name, version]) => [name.replace("+", "/"), version]);
  if (!packages.length) throw new Error("the source map of Mermaid names no packages: has its form changed?");
  return packages;
}

function listPackages() {
  const direct = Object.keys(lock[""].dependencies);
  const builtIntoMermaid = listBuiltIntoMermaid();
  const builtNames = new Set(builtIntoMermaid.map(([name]) => name));
  const withVersion = (place) => [nameOf(place), lock[place].version];
  const packages = [
    ...findAll(direct.filter((name) => name !== "mermaid")).map(withVersion),
    ...findAll(["mermaid"])
      .map(withVersion)
      .filter(([name]) => !builtNames.has(name)),
    ...builtIntoMermaid,
    ["KaTeX fonts", lock["node_modules/katex"].version],
  ];
  return [...new Map(packages.map((one) => [one.join(" "), one])).values()].sort(([a, v], [b, w]) =>
    a === b ? (v < w ? -1 : 1) : a < b ? -1 : 1,
  );
}

/** The installed package of that name with the version, or else with the same major one: it has the same licence. */
function findInstalled(name, version) {
  const places = Object.keys(lock).filter((place) => place.endsWith(`node_modules/${name}`) && nameOf(place) === name);
  const major = (text) => text.split(".")[0];
  return (
    places.find((place) => lock[place].version === version) ??
    places.find((place) => major(lock[place].version) === major(version))
  );
}

const tidy = (text) => text.replaceAll("\r\n", "\n").trim();

const isLicence = (file) => /^(licen[cs]e|copying|notice)([-.](txt|md|mpl))?$/i.test(file);

/** The licence texts of a package: given in `licenses/` by its scope or name, or its own files, or in its README. */
function readText(name, place) {
  const given = `licenses/${name.replace(/^@|\/.*$/g, "")}.txt`;
  if (existsSync(join(root, given))) return tidy(read(given));
  if (!place) return "";
  const files = readdirSync(join(root, place)).sort();
  const own = files.filter(isLicence).map((file) => tidy(read(`${place}/${file}`)));
  if (own.length || !files.includes("README.md")) return own.join("\n\n");
  const [, part = ""] =
    read(`${place}/README.md`).match(/^#+ *licen[cs]e\s*\n(.*Permission is hereby granted.*)/ims) ?? [];
  return tidy(part);
}

const texts = [tidy(read("../LICENSE"))];
function addText(text) {
  if (!texts.includes(text)) texts.push(text);
  return texts.indexOf(text);
}

const components = listPackages().map(([name, version]) => {
  const place = findInstalled(name, version);
  const license = declared[name] ?? lock[place]?.license;
  const text = readText(name, place);
  if (!license) throw new Error(`${name} ${version} declares no licence: name it in licenses/declared.json`);
  if (!text) throw new Error(`${name} ${version} has no licence text: put it in licenses/`);
  return { name, version, license, text: addText(text) };
});
writeFileSync(
  join(root, "public/licenses.json"),
  `${JSON.stringify({ license: "Apache-2.0", text: 0, components, texts }, null, 1)}\n`,
);

const notice = texts
  .map((text, index) => [components.filter((one) => one.text === index), text])
  .filter(([group]) => group.length)
  .map(([group, text]) =>
    [...group.map(({ name, version, license }) => `${name} ${version} (${license})`), "", text].join("\n"),
  );
writeFileSync(
  join(root, "../THIRD-PARTY-LICENSES.txt"),
  [
    [
      "Toolyard is licensed under the Apache License 2.0, see LICENSE. Its web console contains the following third-party",
      "packages, or parts of them, under their own licences. `make console` writes this file from console/package-lock.json",
      "and the installed packages.",
    ].join("\n"),
    ...notice,
  ].join(`\n\n${"-".repeat(80)}\n\n`) + "\n",
);

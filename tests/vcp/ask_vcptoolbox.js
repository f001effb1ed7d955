// Asks the plugins of a VCPToolBox tree by the tree's own Plugin.js, without its server.
// node ask_vcptoolbox.js TREE ANSWERS [AT_ONCE] < CALLS    CALLS: [{name, arguments | messages | static: true}]
"use strict";
const fs = require("fs");
const path = require("path");

const tree = path.resolve(process.argv[2]);
process.chdir(tree);
console.log = console.info = console.warn = console.error = () => {}; // its logs are no answers
const quiet = process.exit;
process.exit = () => {
  throw new Error("a plugin tried to end the process");
};
process.on("uncaughtException", () => {}); // its server goes on too: a plugin that does not read its input, for one
process.on("unhandledRejection", () => {});
require(path.join(tree, "modules/dotenvPatch.js"));
require(require.resolve("dotenv", { paths: [tree] })).config({ path: path.join(tree, "config.env") });

async function ask(manager, call) {
  if (call.static) {
    const plugin = manager.plugins.get(call.name);
    await manager._updateStaticPluginValue(plugin);
    const names = (plugin.capabilities?.systemPromptPlaceholders ?? []).map((one) => one.placeholder);
    const values = names.map((name) => manager.staticPlaceholderValues.get(name) ?? manager.staticPlaceholderValues.get(name.replace(/[{}]/g, "")));
    return { values: Object.fromEntries(names.map((name, at) => [name, values[at]?.value ?? values[at] ?? null])) };
  }
  if (call.messages) return { result: await manager.executeMessagePreprocessor(call.name, call.messages, {}) };
  return { result: await manager.processToolCall(call.name, call.arguments, "127.0.0.1") };
}

(async () => {
  const calls = JSON.parse(fs.readFileSync(0, "utf8"));
  const manager = require(path.join(tree, "Plugin.js"));
  manager.setProjectBasePath(tree);
  await manager.loadPlugins();
  const answers = [];
  let next = 0;
  const work = async () => {
    while (next < calls.length) {
      const at = next++;
      const { name } = calls[at];
      try {
        answers[at] = { name, status: "success", ...(await ask(manager, calls[at])) };
      } catch (error) {
        answers[at] = { name, status: "error", error: error.message };
      }
    }
  };
  await Promise.all(Array.from({ length: Number(process.argv[4] || 1) }, work));
  fs.writeFileSync(process.argv[3], JSON.stringify(answers));
  quiet(0);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  quiet(1);
});

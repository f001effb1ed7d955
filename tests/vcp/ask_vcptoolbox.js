// Asks the plugins of a VCPToolBox tree by the tree's own Plugin.js, without its server.
// node ask_vcptoolbox.js TREE ANSWERS < CALLS    CALLS is a JSON list of {name, arguments} or {name, static: true}
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
  return { result: await manager.processToolCall(call.name, call.arguments, "127.0.0.1") };
}

(async () => {
  const calls = JSON.parse(fs.readFileSync(0, "utf8"));
  const manager = require(path.join(tree, "Plugin.js"));
  manager.setProjectBasePath(tree);
  await manager.loadPlugins();
  const answers = [];
  for (const call of calls) {
    try {
      answers.push({ name: call.name, status: "success", ...(await ask(manager, call)) });
    } catch (error) {
      answers.push({ name: call.name, status: "error", error: error.message });
    }
  }
  fs.writeFileSync(process.argv[3], JSON.stringify(answers));
  quiet(0);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  quiet(1);
});

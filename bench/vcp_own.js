// Calls one tool of a VCPToolBox tree by the tree's own Plugin.js: node vcp_own.js TREE TOOL ARGUMENTS COUNT
// Prints the milliseconds of the start and of each call.
"use strict";
const path = require("path");
const [tree, tool, given, count] = process.argv.slice(2);
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true; // its logs are no answers
const exit = process.exit.bind(process);
process.exit = () => {
  throw new Error("a plugin tried to end the process");
};
process.chdir(tree);
(async () => {
  const began = performance.now();
  require(path.join(tree, "modules/dotenvPatch.js"));
  require(require.resolve("dotenv", { paths: [tree] })).config({ path: path.join(tree, "config.env") });
  const manager = require(path.join(tree, "Plugin.js"));
  manager.setProjectBasePath(tree);
  manager.toolApprovalManager.getApprovalDecision = () => ({ requiresApproval: false });
  await manager.loadPlugins();
  const start = performance.now() - began;
  const calls = [];
  for (let at = 0; at < Number(count); at += 1) {
    const before = performance.now();
    await manager.processToolCall(tool, JSON.parse(given), "127.0.0.1");
    calls.push(performance.now() - before);
  }
  print(JSON.stringify({ start, calls }), () => exit(0));
})();

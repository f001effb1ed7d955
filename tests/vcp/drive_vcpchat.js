// Runs VCPChat's own request code without its windows: node drive_vcpchat.js TREE APP_DATA
// Each line of stdin is {"id", "do", "args"}; each answer is a line {"id", "value" | "error"}.
"use strict";
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const readline = require("node:readline");
const vm = require("node:vm");

const [tree, appData] = process.argv.slice(2);
const own = Module.createRequire(path.join(tree, "main.js"));
const handlers = new Map();
const heard = []; // what was sent to windows
const nothing = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "then" ? undefined : nothing),
  apply: () => nothing,
  construct: () => nothing,
});
const window_ = { isDestroyed: () => false, send: (channel, ...data) => heard.push([channel, ...data]) };
window_.webContents = window_;
const electron = {
  ipcMain: { handle: (name, run) => handlers.set(name, run), on: (name, run) => handlers.set(name, run) },
  app: { ...nothing, whenReady: () => new Promise(() => {}), on() {}, requestSingleInstanceLock: () => true, getPath: () => appData },
};

// Electron and what draws are replaced; nothing that asks a server is.
const load = Module._load;
Module._load = function (request, parent, ...rest) {
  if (request === "electron") return new Proxy(electron, { get: (one, name) => one[name] ?? nothing });
  try {
    return load.call(this, request, parent, ...rest);
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND" && !parent?.filename?.includes("node_modules")) return nothing;
    throw error;
  }
};
console.log = console.warn = console.info = console.debug = () => {};

const read = (file) => fs.readFileSync(path.join(tree, file), "utf8");

// The source of a function as it stands in a file, from its head to the brace at the same indentation.
function cut(file, head) {
  const lines = read(file).split(/\r?\n/);
  const first = lines.findIndex((line) => line.trim().startsWith(head));
  if (first < 0) throw new Error(`${file} has no '${head}'`);
  const indent = lines[first].match(/^\s*/)[0];
  const last = lines.findIndex((line, at) => at > first && line === `${indent}}`);
  return lines.slice(first, last + 1).join("\n");
}

function run(source, given, result) {
  const context = vm.createContext({ console, URL, fetch, setTimeout, clearTimeout, btoa, Buffer, ...given });
  return vm.runInContext(`${source}\n;${result}`, context);
}

const socket = () => own("ws");
const steps = {
  start() {
    const ignored = { AGENT_DIR: appData, USER_DATA_DIR: appData, getMusicState: () => ({}), fileWatcher: null };
    own("./modules/ipc/chatHandlers.js").initialize(window_, { ...ignored, APP_DATA_ROOT_IN_PROJECT: appData });
    own("./VCPHumanToolBox/main.js");
    return [...handlers.keys()].filter((name) => name.includes("vcp"));
  },
  async models(vcpServerUrl, vcpApiKey) {
    const appSettingsManager = { readSettings: async () => ({ vcpServerUrl, vcpApiKey }) };
    const source = `let cachedModels;\n${cut("main.js", "async function fetchAndCacheModels()")}`;
    return run(source, { appSettingsManager }, "fetchAndCacheModels().then(() => cachedModels)");
  },
  invoke: (name, ...args) => handlers.get(name)({ sender: window_ }, ...args),
  heard: () => heard.splice(0),
  vcplog(url, key) {
    const source = `let vcpLogWebSocket = null, vcpLogReconnectInterval = null;\n${cut("main.js", "function connectVcpLog(")}`;
    const send = run(source, { require: own, mainWindow: window_, url, key },
      "connectVcpLog(url, key); (message) => vcpLogWebSocket.send(JSON.stringify(message))");
    steps.answer = send;
  },
  vcpinfo(vcpLogUrl, vcpLogKey) {
    const source = read("RAGmodules/rag-observer-config.js");
    const given = {
      WebSocket: socket(), window: { WebSocket: socket(), addEventListener() {} }, localStorage: { getItem: () => null }, document: nothing,
      updateStatus: (state) => heard.push(["vcpinfo", state]), displayRagInfo: (data) => heard.push(["rag", data]),
      settings: { vcpLogUrl, vcpLogKey },
    };
    run(source, given, "const one = Object.create(RAGObserverConfig.prototype); one.loadSettings = () => settings; one.autoConnect();");
  },
  plugins(host, port, username, password) {
    const source = read("VCPHumanToolBox/renderer_modules/tool-manager.js").replace(/^export /gm, "").replace(/^import .*$/gm, "");
    const stored = JSON.stringify({ host, port, username, password });
    return run(source, { localStorage: { getItem: () => stored }, window: {}, document: nothing }, "new ToolManager().fetchPlugins()");
  },
  log(serverBaseUrl, name, password) {
    const source = `${cut("Logmodules/log.js", "async function fetchLog(")}\n${cut("Logmodules/log.js", "function splitLogLines(")}`;
    const given = {
      serverBaseUrl, apiAuthHeader: `Basic ${btoa(`${name}:${password}`)}`, isLoading: false, elements: {}, currentOffset: 0,
      currentLogPath: "", allLines: [], setStatus: (text) => heard.push(["log", text]), setMeta() {}, trimLines() {}, render() {},
      formatBytes: String, showToast: (text) => heard.push(["toast", text]),
    };
    return run(source, given, "fetchLog({ incremental: false }).then(() => fetchLog({ incremental: true })).then(() => allLines)");
  },
};

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, do: name, args } = JSON.parse(line);
  try {
    const value = await steps[name](...args);
    process.stdout.write(`${JSON.stringify({ id, value: value ?? null })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ id, error: String(error && error.stack) })}\n`);
  }
}).on("close", () => process.exit(0));

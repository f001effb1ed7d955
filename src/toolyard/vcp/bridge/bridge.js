// The plugins of a VCPToolBox installation that live in its own process, without its server.
//
//   node bridge.js TREE     started in TREE, by bridge_process.py; descriptor 3 is written, descriptor 4 is read
//
// It loads the installation's own Plugin.js in the order of its server.js and answers messages, one JSON object a line:
//
//   start        {plugins}                the folders whose modules may be loaded     -> ready {plugins, order, problems}
//   call         {id, tool, args, ip}                                                 -> answer {id, value | error, refused}
//   preprocess   {id, names, messages, config}                                        -> answer {id, value: messages}
//   placeholders {id}                                                                 -> answer {id, value: {name: text}}
//   http         {id, method, path, headers, body}           -> head {id, status, headers}, chunk {id, data}..., end {id}
//   cancel {id}, taken {id} (a chunk), ping {id} -> answer {id}, stop
//
// and it asks: ask {id, what: "tool", ...} -> reply {id, value | error}; it tells: push {data, target}.
// What plugins print goes to stderr, with the process's own stdout. Nothing here ends the process but ``stop``, the end
// of descriptor 4, or the host.
"use strict";

const { AsyncLocalStorage } = require("async_hooks");
const fs = require("fs");
const http = require("http");
const Module = require("module");
const net = require("net");
const path = require("path");
const { Duplex } = require("stream");

const MAX_LINE = 64 * 1024 * 1024; // characters of a message, either way
const MAX_CHUNKS = 16; // of an HTTP answer that the host has not taken yet
const CHUNK = 48 * 1024;
const STOP_MS = 5000;

const tree = path.resolve(process.argv[2]);
const output = new net.Socket({ fd: 3, readable: false, writable: true });
const input = new net.Socket({ fd: 4, readable: true, writable: false });
const current = new AsyncLocalStorage(); // the call that a piece of code runs for
const calls = new Map(); // running calls, by id
const answers = new Map(); // HTTP answers under way, by id
const asked = new Map(); // questions to the host, by id
const problems = {}; // why a module was not loaded or initialised, by plugin
let lastQuestion = 0;
let manager = null;
let web = null;

function send(message) {
  let line;
  try {
    line = JSON.stringify(message, dropCycles());
  } catch (error) {
    line = JSON.stringify({ type: message.type, id: message.id, error: `its result is no JSON: ${error.message}` });
  }
  if (line.length > MAX_LINE) {
    line = JSON.stringify({ type: message.type, id: message.id, error: "its result is larger than 64 MiB" });
  }
  output.write(line + "\n");
}

function dropCycles() {
  const above = [];
  return function (key, value) {
    if (typeof value === "bigint") return value.toString();
    if (typeof value !== "object" || value === null) return value;
    while (above.length && above[above.length - 1] !== this) above.pop();
    if (above.includes(value)) return undefined;
    above.push(value);
    return value;
  };
}

const describe = (error) => (error instanceof Error ? error.message || error.name : String(error));

// --- what would end or confuse the process ---

function guardProcess() {
  const refuse = (what) => () => {
    throw new Error(`${what} is not done here: a plugin may not end the process of the others`);
  };
  const kill = process.kill.bind(process);
  const end = process.reallyExit.bind(process);
  process.exit = refuse("process.exit");
  process.reallyExit = refuse("process.reallyExit");
  process.abort = refuse("process.abort");
  process.kill = (pid, signal) => {
    if (signal !== 0 && [process.pid, 0, -process.pid].includes(Number(pid))) return refuse("process.kill")();
    return kill(pid, signal);
  };
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error) => console.error(`[bridge] ${event}:`, error));
  }
  for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
  return end;
}

// --- only what was allowed is loaded ---

function guardModules(allowed) {
  const pluginFolder = path.join(tree, "Plugin") + path.sep;
  const host = path.join(tree, "Plugin.js");
  const load = Module._load;
  Module._load = function (request, parent, ...rest) {
    if (parent && parent.filename === host && path.isAbsolute(request) && request.startsWith(pluginFolder)) {
      const folder = request.slice(pluginFolder.length).split(path.sep)[0];
      if (!allowed.has(folder)) throw new Error(`${folder} is not switched on in Toolyard`);
    }
    return load.call(this, request, parent, ...rest);
  };
}

function requireOptional(name) {
  try {
    return require(path.join(tree, name));
  } catch (error) {
    console.error(`[bridge] ${name} cannot be loaded:`, error);
    return null;
  }
}

async function attempt(name, action) {
  try {
    return await action();
  } catch (error) {
    console.error(`[bridge] ${name}:`, error);
    problems[name] = describe(error);
    return undefined;
  }
}

// --- the start, in the order of server.js ---

async function start(options) {
  const began = Date.now();
  const allowed = new Set(options.plugins);
  guardModules(allowed);
  require(path.join(tree, "modules/dotenvPatch.js"));
  const treeRequire = Module.createRequire(path.join(tree, "server.js"));
  treeRequire("dotenv").config({ path: path.join(tree, "config.env"), quiet: true });
  const store = needsStore(allowed) ? loadStore() : {};
  const sockets = require(path.join(tree, "WebSocketServer.js"));
  answerPushes(sockets);
  manager = require(path.join(tree, "Plugin.js"));
  noteProblems(manager);
  await startPrompts();
  await startRecords();
  manager.setProjectBasePath(tree);
  if (store.knowledge) {
    const started = await attempt("knowledge base", async () => (await store.knowledge.initialize(), true));
    if (started) manager.setVectorDBManager(store.knowledge);
  }
  if (store.cold) await attempt("cold knowledge base", () => store.cold.initialize());
  if (store.cold) manager.setTdbKnowledgeManager(store.cold);
  const debugMode = String(process.env.DebugMode).toLowerCase() === "true";
  answerCalls(manager);
  await manager.loadPlugins();
  await attempt("dynamic tools", () =>
    requireOptional("modules/dynamicToolRegistry.js")?.initialize({
      pluginManager: manager,
      projectBasePath: tree,
      debugMode,
    }),
  );
  sockets.setPluginManager?.(manager);
  manager.setWebSocketServer(sockets);
  await attempt("files of others", () => requireOptional("FileFetcherServer.js")?.initialize(sockets));
  await attempt("routes", () => startRoutes(treeRequire("express")));
  injectDependencies(store);
  send({ type: "ready", ms: Date.now() - began, ...listPlugins(allowed), problems });
}

// plugins that search VCPToolBox's knowledge base, which takes seconds and memory to open
const NEED_STORE = new Set(["RAGDiaryPlugin", "DailyNote", "DailyNoteManager", "LightMemo", "AgentDream"]);

function needsStore(allowed) {
  return [...allowed].some((folder) => {
    try {
      const file = path.join(tree, "Plugin", folder, "plugin-manifest.json");
      const manifest = JSON.parse(fs.readFileSync(file, "utf8"));
      return NEED_STORE.has(manifest.name) || manifest.requiresKnowledgeBaseManager === true;
    } catch {
      return false; // Plugin.js does not load it either
    }
  });
}

function loadStore() {
  try {
    require(path.join(tree, "rust-vexus-lite")); // KnowledgeBaseManager.js ends the process without it
  } catch (error) {
    problems["knowledge base"] = describe(error).split("\n")[0];
    return { cold: requireOptional("TDBKnowledge.js") };
  }
  return { knowledge: requireOptional("KnowledgeBaseManager.js"), cold: requireOptional("TDBKnowledge.js") };
}

async function startRecords() {
  const records = requireOptional("modules/toolCallRecordStore.js");
  const started = await attempt("records", async () => (await records?.initialize(), true));
  if (records && !started) Object.assign(records, { beginRecord: () => null, finishRecord: () => null }); // calls go on
}

async function startPrompts() {
  const folder = (variable, usual) => path.resolve(tree, (process.env[variable] || "").trim() || usual);
  const load = (name) => requireOptional(`modules/${name}.js`);
  const [agents, texts, toolboxes] = ["agentManager", "tvsManager", "toolboxManager"].map(load);
  await attempt("agents", async () => {
    agents?.setAgentDir(folder("AGENT_DIR_PATH", "Agent"));
    await agents?.initialize(false);
  });
  await attempt("texts", async () => {
    texts?.setTvsDir(folder("TVSTXT_DIR_PATH", "TVStxt"));
    texts?.initialize(false);
    toolboxes?.setTvsDir(folder("TVSTXT_DIR_PATH", "TVStxt"));
    await toolboxes?.initialize(false);
  });
}

function noteProblems() {
  // Plugin.js only logs why a module failed: it names the plugin in the first argument and gives the error after it
  const log = console.error;
  console.error = (...words) => {
    const found = /^\[PluginManager\] Error (?:loading|initializing) (?:module for|service plugin) (\S+?):$/.exec(words[0]);
    if (found) problems[found[1]] = describe(words[1]).split("\n")[0];
    log(...words);
  };
}

function startRoutes(express) {
  const app = express();
  const admin = express.Router();
  const json = express.json({ limit: "50mb" });
  app.use((request, response, next) => (request.body === undefined ? json(request, response, next) : next()));
  app.use(express.urlencoded({ limit: "50mb", extended: true }));
  app.use(express.text({ limit: "50mb", type: ["text/plain", "text/html"] }));
  manager.initializeServices(app, admin, tree);
  app.use("/admin_api", admin);
  app.use((request, response) => response.writeHead(404, { "x-no-route": "1" }).end()); // the server answers it
  web = http.createServer(app);
}

function injectDependencies(store) {
  const given = {
    knowledgeBaseManager: store.knowledge,
    tdbKnowledgeManager: store.cold,
    vcpLogFunctions: manager.getVCPLogFunctions(),
  };
  const modules = [...manager.messagePreprocessors, ...[...manager.serviceModules].map(([name, one]) => [name, one.module])];
  for (const [name, module] of new Map(modules)) {
    if (name === "VCPLog" || typeof module.setDependencies !== "function") continue;
    try {
      module.setDependencies(given);
    } catch (error) {
      problems[name] = describe(error);
    }
  }
}

function listPlugins(allowed) {
  const direct = new Set(["hybridservice", "service", "messagePreprocessor"]);
  const plugins = [];
  for (const [name, manifest] of manager.plugins) {
    const folder = path.basename(manifest.basePath || "");
    if (!direct.has(manifest.pluginType) || !allowed.has(folder)) continue;
    const module = manager.getServiceModule(name) || manager.messagePreprocessors.get(name);
    plugins.push({
      name,
      folder,
      loaded: module !== undefined,
      tool: typeof manager.getServiceModule(name)?.processToolCall === "function",
      preprocessor: manager.messagePreprocessors.has(name),
      problem: problems[name] || "",
    });
  }
  return { plugins, order: manager.preprocessorOrder };
}

// --- what plugins ask of the server ---

function ask(question) {
  return new Promise((resolve, reject) => {
    const id = ++lastQuestion;
    asked.set(id, { resolve, reject });
    send({ type: "ask", id, call: current.getStore()?.id, ...question });
  });
}

function answerPushes(sockets) {
  sockets.broadcast = (data, target = null) => send({ type: "push", data, target });
  sockets.broadcastVCPInfo = (data) => send({ type: "push", data, target: "VCPInfo" });
  sockets.broadcastToAdminPanel = (data) => send({ type: "push", data, target: "AdminPanel" });
}

function answerCalls() {
  const own = manager.processToolCall.bind(manager);
  manager.callHere = own;
  manager.processToolCall = (tool, args) => ask({ what: "tool", tool, args });
  manager.toolApprovalManager.getApprovalDecision = () => ({ requiresApproval: false }); // Toolyard has asked
  const direct = manager._executeDirectToolCallWithTimeout.bind(manager);
  manager._executeDirectToolCallWithTimeout = (plugin, name, module, args, context) => {
    const call = current.getStore();
    if (!call) return direct(plugin, name, module, args, context);
    const watched = {
      processToolCall: async (given, context) => {
        const signals = [context.signal, call.stop.signal].filter(Boolean);
        context.signal = AbortSignal.any ? AbortSignal.any(signals) : call.stop.signal;
        const result = await module.processToolCall(given, context);
        call.raw = result; // as it was before the host's additions
        call.own = findOwnKeys(result);
        return result;
      },
    };
    return direct(plugin, name, watched, args, context);
  };
}

const ADDED = ["MaidName", "timestamp"];

function findOwnKeys(result) {
  const isObject = (value) => typeof value === "object" && value !== null;
  const inner = isObject(result) && result.status === "success" && isObject(result.result) ? result.result : result;
  return isObject(inner) ? ADDED.filter((name) => Object.hasOwn(inner, name)) : null;
}

// --- messages of the host ---

async function answerCall({ id, tool, args, ip }) {
  const call = { id, stop: new AbortController(), raw: undefined, own: undefined, refused: new Set() };
  calls.set(id, call);
  try {
    let value = await current.run(call, () => manager.callHere(tool, args, ip || "127.0.0.1", "toolyard"));
    if (call.own === null) value = call.raw;
    else if (call.own && !Array.isArray(value)) {
      value = { ...value };
      for (const name of ADDED) if (!call.own.includes(name)) delete value[name];
    }
    send({ type: "answer", id, value: value === undefined ? null : value, refused: [...call.refused] });
  } catch (error) {
    send({ type: "answer", id, error: describe(error), refused: [...call.refused] });
  } finally {
    calls.delete(id);
  }
}

async function answerPreprocess({ id, names, messages, config }) {
  let value = messages;
  try {
    for (const name of names || manager.preprocessorOrder) {
      if (manager.messagePreprocessors.has(name)) {
        value = await manager.executeMessagePreprocessor(name, value, config || {});
      }
    }
    send({ type: "answer", id, value });
  } catch (error) {
    send({ type: "answer", id, error: describe(error) });
  }
}

function answerPlaceholders({ id }) {
  const value = {};
  for (const [name, text] of manager.getAllPlaceholderValues()) value[name] = text;
  send({ type: "answer", id, value });
}

class Pipe extends Duplex {
  // one end of a connection that never leaves this process
  constructor() {
    super({ allowHalfOpen: true });
    this.other = null;
    this.taken = null;
  }
  static pair() {
    const [near, far] = [new Pipe(), new Pipe()];
    [near.other, far.other] = [far, near];
    return [near, far];
  }
  _read() {
    const taken = this.taken;
    this.taken = null;
    taken?.();
  }
  _write(chunk, encoding, done) {
    if (this.other.push(chunk)) return done();
    this.other.taken = done;
  }
  _final(done) {
    this.other.push(null);
    done();
  }
  _destroy(error, done) {
    if (!this.other.destroyed) this.other.destroy();
    done(error);
  }
  setTimeout() {
    return this;
  }
  setNoDelay() {
    return this;
  }
  setKeepAlive() {
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  get remoteAddress() {
    return "127.0.0.1";
  }
}

function answerHttp({ id, method, path: target, headers, body }) {
  if (!web) return send({ type: "end", id, error: "no plugin has routes here" });
  const [near, far] = Pipe.pair();
  web.emit("connection", far);
  const request = http.request({ method, path: target, headers, createConnection: () => near });
  const state = { waiting: 0, resume: null, stop: () => request.destroy() };
  answers.set(id, state);
  const finish = (error) => {
    if (!answers.delete(id)) return;
    near.destroy();
    send({ type: "end", id, ...(error ? { error: describe(error) } : {}) });
  };
  request.on("response", async (response) => {
    send({ type: "head", id, status: response.statusCode, headers: listHeaders(response.rawHeaders) });
    try {
      for await (const chunk of response) {
        for (let at = 0; at < chunk.length; at += CHUNK) {
          if (!answers.has(id)) return;
          send({ type: "chunk", id, data: chunk.subarray(at, at + CHUNK).toString("base64") });
          if (++state.waiting >= MAX_CHUNKS) await new Promise((resolve) => (state.resume = resolve));
        }
      }
      finish();
    } catch (error) {
      finish(error);
    }
  });
  request.on("error", finish);
  request.on("upgrade", () => finish(new Error("upgrades are not answered here")));
  request.end(body ? Buffer.from(body, "base64") : undefined);
}

function listHeaders(raw) {
  const pairs = [];
  for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at], raw[at + 1]]);
  return pairs;
}

function take({ id }) {
  const state = answers.get(id);
  if (!state) return;
  state.waiting -= 1;
  const resume = state.resume;
  state.resume = null;
  resume?.();
}

function cancel({ id }) {
  calls.get(id)?.stop.abort(new Error("the call was cancelled"));
  const state = answers.get(id);
  if (!state) return;
  answers.delete(id);
  state.resume?.();
  state.stop();
}

function reply({ id, value, error }) {
  const question = asked.get(id);
  asked.delete(id);
  if (error === undefined) question?.resolve(value);
  else question?.reject(new Error(error));
}

let stopping = null;

function stop() {
  stopping ??= (async () => {
    const timer = setTimeout(() => endProcess(0), STOP_MS);
    await attempt("stop", () => manager?.shutdownAllPlugins());
    await attempt("stop", () => manager?.vectorDBManager?.shutdown?.());
    clearTimeout(timer);
    endProcess(0);
  })();
}

const HANDLERS = {
  start: (message) =>
    start(message).catch((error) => {
      console.error("[bridge]", error);
      send({ type: "ready", plugins: [], order: [], problems, error: describe(error) });
    }),
  call: answerCall,
  preprocess: answerPreprocess,
  placeholders: answerPlaceholders,
  http: answerHttp,
  taken: take,
  cancel,
  reply,
  ping: ({ id }) => send({ type: "answer", id, value: null }),
  stop,
};

const MOST_REFUSED = 20;
globalThis[Symbol.for("toolyard.refused")] = (file) => {
  const refused = current.getStore()?.refused;
  if (refused && refused.size < MOST_REFUSED && file.startsWith(tree + path.sep)) refused.add(file);
};
require("../../plugins/process/refusals/note_refusals.js");

const endProcess = guardProcess();
for (const name of ["log", "info", "debug"]) console[name] = (...words) => console.error(...words);
process.chdir(tree);

let rest = [];
input.setEncoding("utf8");
input.on("data", (text) => {
  const lines = text.split("\n");
  if (lines.length === 1) return void rest.push(text);
  lines[0] = rest.join("") + lines[0];
  rest = [lines.pop()];
  for (const line of lines) {
    try {
      const message = JSON.parse(line);
      HANDLERS[message.type](message);
    } catch (error) {
      console.error("[bridge] a message of the host failed:", error);
    }
  }
});
input.on("close", stop);
output.on("error", stop);

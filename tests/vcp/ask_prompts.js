// Asks a VCPToolBox tree's own message processor what becomes of the messages of requests, without its server.
// node --preserve-symlinks --preserve-symlinks-main ask_prompts.js FOLDER < REQUESTS
// FOLDER has the prompts, and modules and node_modules that are links into the tree. REQUESTS is a JSON object of
// {now, statics, descriptions, nodes, requests: [{model, messages}]}; printed is a list of lists of messages.
"use strict";
const fs = require("fs");
const path = require("path");

const folder = path.resolve(process.argv[2]);
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
process.chdir(folder);
console.log = console.info = console.warn = console.error = () => {};
const load = (name) => require(path.join(folder, "modules", name));
load("dotenvPatch.js");
require(path.join(folder, "node_modules/dotenv")).config({ path: "config.env" });

const Clock = Date;
globalThis.Date = class extends Clock {
  constructor(...when) {
    super(...(when.length ? when : [asked.now]));
  }
};

const folds = load("foldProtocol.js");
const agents = load("agentManager.js");
const texts = load("tvsManager.js");
const toolboxes = load("toolboxManager.js");
const models = load("sarPromptManager.js");
const divider = load("roleDivider.js");
for (const one of [agents, texts, toolboxes]) one.watchFiles = () => {};
models.watchFile = () => {};
models.savePrompts = async () => {};
const place = (name, usual) => path.resolve(folder, process.env[name]?.trim() || usual);

function readStatic(printed) {
  const text = printed.trim();
  if (text.startsWith("{")) {
    try {
      const value = JSON.parse(text);
      if (value && value.vcp_dynamic_fold) return value;
      return text;
    } catch {}
  }
  return folds.hasFoldMarkers(text) ? folds.buildDynamicFoldObject({ content: text, pluginDescription: "x" }) : text;
}

function listRules(kind) {
  return Object.keys(process.env)
    .filter((name) => new RegExp(`^${kind}\\d+$`).test(name) && process.env[`${kind}_Output${name.slice(kind.length)}`])
    .map((name) => ({ detector: process.env[name], output: process.env[`${kind}_Output${name.slice(kind.length)}`] }));
}

const isSet = (name, usual = "true") => (process.env[name] || usual).toLowerCase() === "true";
const roles = (prefix) => ({
  system: isSet(`${prefix}System`),
  assistant: isSet(`${prefix}Assistant`),
  user: isSet(`${prefix}User`),
});

(async () => {
  agents.setAgentDir(place("AGENT_DIR_PATH", "Agent"));
  texts.setTvsDir(place("TVSTXT_DIR_PATH", "TVStxt"));
  await agents.loadMap();
  await toolboxes.initialize();
  await models.initialize();
  const processor = load("messageProcessor.js");
  const emoji = new Map();
  const lists = path.join(folder, "Plugin/EmojiListGenerator/generated_lists");
  for (const name of fs.existsSync(lists) ? fs.readdirSync(lists) : [])
    emoji.set(name.replace(/\.txt$/, ""), fs.readFileSync(path.join(lists, name), "utf8"));
  const statics = new Map(Object.entries(asked.statics).map(([name, text]) => [name, readStatic(text)]));
  const made = [];
  for (const request of asked.requests) {
    const context = {
      pluginManager: {
        messagePreprocessors: new Map(),
        getAllPlaceholderValues: () => statics,
        getIndividualPluginDescriptions: () => new Map(Object.entries(asked.descriptions)),
        getResolvedPluginConfigValue: (_, name) => process.env[name],
      },
      webSocketServer: { formatDistributedServerListForPrompt: () => asked.nodes },
      cachedEmojiLists: emoji,
      detectors: listRules("Detector"),
      superDetectors: listRules("SuperDetector"),
      messages: request.messages,
      expandedAgentName: null,
      expandedToolboxes: new Set(),
    };
    const fill = (text, role) => processor.replaceAgentVariables(text, request.model, role, context);
    let messages = [];
    for (const message of request.messages) {
      const own = { ...message };
      if (typeof own.content === "string") own.content = own.content && (await fill(own.content, own.role));
      else if (Array.isArray(own.content)) {
        const parts = [];
        for (const part of own.content)
          parts.push(part.type === "text" ? { ...part, text: await fill(part.text, own.role) } : part);
        own.content = parts;
      }
      messages.push(own);
    }
    messages = processor.applyDetectorsToMessages(messages, context);
    if (isSet("EnableRoleDivider", "false"))
      messages = divider.process(messages, {
        ignoreList: JSON.parse(process.env.RoleDividerIgnoreList || "[]"),
        switches: roles("RoleDivider"),
        scanSwitches: roles("RoleDividerScan"),
        removeDisabledTags: isSet("RoleDividerRemoveDisabledTags"),
        skipCount: 1,
      });
    made.push(messages);
  }
  process.stdout.write(JSON.stringify(made), () => process.exit(0)); // watchers would keep it
})();

// A host of plugins with the interface that the bridge uses, written for these tests.
"use strict";
const { EventEmitter } = require("events");
const fs = require("fs");
const path = require("path");

class Host extends EventEmitter {
  constructor() {
    super();
    Object.assign(this, {
      plugins: new Map(),
      messagePreprocessors: new Map(),
      serviceModules: new Map(),
      staticPlaceholderValues: new Map(),
      preprocessorOrder: [],
      vectorDBManager: null,
      toolApprovalManager: { getApprovalDecision: () => ({ requiresApproval: true }) },
    });
  }
  setProjectBasePath(folder) {
    this.projectBasePath = folder;
  }
  setVectorDBManager(store) {
    this.vectorDBManager = store;
  }
  setTdbKnowledgeManager(store) {
    this.tdbKnowledgeManager = store;
  }
  setWebSocketServer(sockets) {
    this.webSocketServer = sockets;
  }
  getServiceModule(name) {
    return this.serviceModules.get(name)?.module;
  }
  getVCPLogFunctions() {
    return { pushVcpLog: (data) => this.webSocketServer.broadcast({ type: "vcp_log", data }, "VCPLog"), pushVcpInfo() {} };
  }
  async loadPlugins() {
    for (const folder of fs.readdirSync(path.join(__dirname, "Plugin")).sort()) {
      const basePath = path.join(__dirname, "Plugin", folder);
      const file = path.join(basePath, "plugin-manifest.json");
      if (!fs.existsSync(file)) continue;
      const manifest = { ...JSON.parse(fs.readFileSync(file, "utf8")), basePath };
      this.plugins.set(manifest.name, manifest);
      if (!manifest.entryPoint.script) continue;
      try {
        const module = require(path.join(basePath, manifest.entryPoint.script));
        if (typeof module.processMessages === "function") this.messagePreprocessors.set(manifest.name, module);
        if (manifest.pluginType !== "messagePreprocessor") this.serviceModules.set(manifest.name, { manifest, module });
        const config = { PORT: process.env.PORT, Key: process.env.Key, PROJECT_BASE_PATH: this.projectBasePath };
        await module.initialize?.(config, { pluginManager: this, knowledgeBaseManager: this.vectorDBManager });
      } catch (error) {
        const what = this.serviceModules.has(manifest.name) ? "initializing" : "loading";
        console.error(`[PluginManager] Error ${what} module for ${manifest.name}:`, error);
      }
    }
    this.preprocessorOrder = [...this.messagePreprocessors.keys()];
  }
  initializeServices(app, admin) {
    for (const [name, { module }] of this.serviceModules) {
      const router = require("express").Router();
      module.registerApiRoutes?.(router, {}, this.projectBasePath, this.webSocketServer);
      app.use(`/api/plugins/${name}`, router);
      module.registerRoutes?.(app, admin, {}, this.projectBasePath);
    }
  }
  _executeDirectToolCallWithTimeout(plugin, name, module, args, context) {
    const stop = new AbortController();
    return module.processToolCall(args, { ...context, signal: stop.signal });
  }
  async processToolCall(name, args) {
    const plugin = this.plugins.get(name);
    if (this.toolApprovalManager.getApprovalDecision(name, args).requiresApproval) throw new Error("nobody answered");
    const module = this.getServiceModule(name);
    if (!module) throw new Error(JSON.stringify({ plugin_execution_error: `${name} has no module` }));
    const result = await this._executeDirectToolCallWithTimeout(plugin, name, module, { ...args }, {});
    if (result?.status === "error") throw new Error(JSON.stringify({ plugin_error: result.error, timestamp: "now" }));
    const value = typeof result === "object" && result !== null ? result : { original_plugin_output: result };
    if (args.maid) value.MaidName = args.maid;
    value.timestamp = "now";
    return value;
  }
  async executeMessagePreprocessor(name, messages, config) {
    try {
      return await this.messagePreprocessors.get(name).processMessages(messages, config);
    } catch {
      return messages;
    }
  }
  getAllPlaceholderValues() {
    return new Map([...this.staticPlaceholderValues].map(([name, entry]) => [name, entry.value]));
  }
  async shutdownAllPlugins() {
    for (const { module } of this.serviceModules.values()) await module.shutdown?.();
  }
}

module.exports = new Host();

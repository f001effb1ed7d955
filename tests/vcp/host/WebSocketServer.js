"use strict";
module.exports = { broadcast() {}, broadcastVCPInfo() {}, setPluginManager() {} };

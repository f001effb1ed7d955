"use strict";
try {
  require("./rust-vexus-lite");
} catch {
  process.exit(1);
}
module.exports = { async initialize() {}, name: "the knowledge base" };

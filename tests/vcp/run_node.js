// Runs VCPChat's own, unmodified distributed server: node run_node.js FOLDER URL KEY NAME
const path = require("node:path");
const [folder, mainServerUrl, vcpKey, serverName] = process.argv.slice(2);
const DistributedServer = require(path.join(folder, "VCPDistributedServer.js"));
const server = new DistributedServer({ mainServerUrl, vcpKey, serverName, port: 0, debugMode: true });
process.on("SIGTERM", () => server.stop().then(() => process.exit(0)));
server.initialize();

// Loaded by node before a plugin's script: waits at stdin until there is a call, then the script runs as ever.
// The host sees the first byte go and knows that we stand here. Then come a length and the variables the call adds.
"use strict";
const fs = require("fs");
const { isMainThread } = require("worker_threads");

function read(size) {
  const data = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const more = fs.readSync(0, data, at, size - at, null);
    if (more === 0) process.reallyExit(0); // there will be no call
    at += more;
  }
  return data;
}

if (isMainThread) {
  const ours = process.execArgv.indexOf("--require");
  process.execArgv.splice(ours, 2); // what the script forks shall not wait
  delete require.cache[__filename];
  read(1);
  for (const pair of read(read(4).readUInt32BE(0)).toString("utf8").slice(1).split("\0")) {
    const at = pair.indexOf("=");
    if (at > 0) process.env[pair.slice(0, at)] = pair.slice(at + 1);
  }
}

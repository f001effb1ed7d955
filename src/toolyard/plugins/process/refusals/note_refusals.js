// Loaded by node before a plugin's script. Says on stderr which files the plugin was kept from, also when the plugin
// itself swallows the error; see __init__.py. Nothing else changes: each call returns and throws what it did before.
"use strict";
const fs = require("fs");
const path = require("path");

const REFUSED = new Set(["EACCES", "EPERM", "EROFS"]);
const MOST = 50;
const TAKER = Symbol.for("toolyard.refused");
const noted = new Set();
const { writeSync, accessSync } = fs;

function isRefused(error, target) {
  if (!error) return false;
  if (REFUSED.has(error.code)) return true;
  if (error.code !== "ENOENT" || error.syscall !== "mkdir") return false;
  for (let above = path.dirname(target); above !== path.dirname(above); above = path.dirname(above)) {
    try {
      accessSync(above, fs.constants.F_OK);
    } catch {
      continue;
    }
    try {
      accessSync(above, fs.constants.W_OK);
      return false;
    } catch (refusal) {
      return REFUSED.has(refusal.code);
    }
  }
  return false;
}

function note(error) {
  try {
    const target = path.resolve(String(error.dest ?? error.path));
    if ((error.path ?? error.dest) === undefined || !isRefused(error, target)) return;
    if (globalThis[TAKER]) return void globalThis[TAKER](target); // the bridge tells the calls of its process apart
    if (noted.size >= MOST) return;
    if (noted.has(target)) return;
    noted.add(target);
    writeSync(2, `\nTOOLYARD REFUSED ${JSON.stringify(target)}\n`);
  } catch {
    // stderr is closed: nobody reads it
  }
}

function watch(holder, name) {
  const original = holder[name];
  if (typeof original !== "function" || /^[A-Z_]/.test(name)) return;
  const watched = function (...words) {
    const last = words.length - 1;
    if (typeof words[last] === "function") {
      const done = words[last];
      words[last] = function (error, ...rest) {
        if (error instanceof Error) note(error);
        return done.call(this, error, ...rest);
      };
    }
    let value;
    try {
      value = original.apply(this, words);
    } catch (error) {
      note(error);
      throw error;
    }
    if (value && typeof value.then === "function") value.then(undefined, note);
    return value;
  };
  Object.defineProperties(watched, Object.getOwnPropertyDescriptors(original));
  holder[name] = watched;
}

const ours = process.execArgv.indexOf(__filename);
if (ours > 0) process.execArgv.splice(ours - 1, 2); // what the script forks may not be able to read this file
for (const name of ["access", "appendFile", "copyFile", "mkdir", "open", "opendir", "readdir", "readFile", "rename", "rm",
  "rmdir", "stat", "unlink", "writeFile"]) {
  watch(fs, name);
  watch(fs, `${name}Sync`);
  watch(fs.promises, name);
}
const { ReadStream, WriteStream } = fs;
for (const stream of [ReadStream, WriteStream]) {
  const emit = stream.prototype.emit;
  stream.prototype.emit = function (event, ...words) {
    if (event === "error" && words[0] instanceof Error) note(words[0]);
    return emit.call(this, event, ...words);
  };
}
require("module").syncBuiltinESMExports();

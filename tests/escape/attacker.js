// The attempts that Node can make by itself. See attacker.py for the protocol.
"use strict";
const childProcess = require("child_process");
const dgram = require("dgram");
const dns = require("dns");
const fs = require("fs");
const http = require("http");
const net = require("net");
const os = require("os");
const path = require("path");
const { Worker } = require("worker_threads");

const HOME = process.env.HOME;
const LIMIT_MS = 10000;

const ownPath = (name) => {
  const own = path.join(HOME, `${name}-${process.pid}`);
  fs.rmSync(own, { force: true, recursive: true });
  return own;
};
const readStart = (file) => {
  const opened = fs.openSync(file, "r");
  const buffer = Buffer.alloc(100);
  const count = fs.readSync(opened, buffer, 0, 100, null);
  fs.closeSync(opened);
  return `read ${count} bytes`;
};
const openOnly = (file, flags) => {
  fs.closeSync(fs.openSync(file, flags | fs.constants.O_NOCTTY | fs.constants.O_NONBLOCK));
  return "opened it";
};
const write = (file, text) => {
  const opened = fs.openSync(file, "r+");
  const buffer = Buffer.alloc(1, "x");
  if (text === "") fs.readSync(opened, buffer, 0, 1, 0);
  fs.writeSync(opened, text === "" ? buffer : Buffer.from(text), 0, null, 0);
  fs.closeSync(opened);
  return "wrote it";
};
const link = (target) => {
  const own = ownPath("link");
  fs.symlinkSync(target, own);
  return own;
};
const settle = (start) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("it takes too long")), LIMIT_MS);
    const done = (action) => (value) => {
      clearTimeout(timer);
      action(value);
    };
    start(done(resolve), done(reject));
  });
const connect = (address) =>
  settle((resolve, reject) => {
    const opened = net.connect(address, () => {
      opened.destroy();
      resolve("connected");
    });
    opened.on("error", reject);
  });
const ask = (host, port, packet) =>
  settle((resolve, reject) => {
    const opened = dgram.createSocket(host.includes(":") ? "udp6" : "udp4");
    const end = (action) => (value) => {
      opened.close();
      action(value);
    };
    opened.on("error", end(reject));
    opened.on("message", end(() => resolve("got an answer")));
    opened.send(packet, Number(port), host, (error) => error && end(reject)(error));
  });

const OPERATIONS = {
  "read": readStart,
  "open": (file) => openOnly(file, fs.constants.O_RDONLY),
  "open to write": (file) => openOnly(file, fs.constants.O_WRONLY),
  "list": (folder, name) => {
    const names = fs.readdirSync(folder);
    return name === "" || names.includes(name) ? "listed it" : "";
  },
  "follow": (file) => `leads to ${fs.readlinkSync(file)}`,
  "see line": (file) => (fs.readFileSync(file).length ? "saw it" : ""),
  "see secret": (file) => `saw ${fs.readFileSync(file).length} bytes`,
  "write": write,
  "append": (file) => {
    fs.appendFileSync(file, " ");
    return "wrote it";
  },
  "create": (file) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, "", { flag: "wx" });
    fs.unlinkSync(file);
    return "created it";
  },
  "make folder": (folder) => {
    fs.mkdirSync(folder);
    fs.rmdirSync(folder);
    return "made it";
  },
  "change mode": (file) => {
    fs.chmodSync(file, fs.statSync(file).mode & 0o7777);
    return "changed it";
  },
  "change owner": (file) => {
    fs.chownSync(file, fs.statSync(file).uid, fs.statSync(file).gid);
    return "changed it";
  },
  "change times": (file) => {
    fs.utimesSync(file, new Date(), new Date());
    return "changed them";
  },
  "truncate": (file) => {
    childProcess.execFileSync("truncate", ["-s", "0", file], { stdio: "ignore" });
    return "emptied it";
  },
  "execute": (program) => `it printed ${childProcess.execFileSync(program, { stdio: "pipe" })}`,
  "read by symlink": (file) => readStart(link(file)),
  "write by symlink": (file) => write(link(file), ""),
  "read by hard link": (file) => {
    const own = ownPath("hard");
    fs.linkSync(file, own);
    return readStart(own);
  },
  "move in": (file) => {
    const own = ownPath("own");
    fs.writeFileSync(own, "");
    fs.renameSync(own, file);
    return "replaced it";
  },
  "read by cat": (file) => `it printed ${childProcess.execFileSync("cat", [file], { stdio: "pipe" }).length} bytes`,
  "read in thread": (file) =>
    settle((resolve, reject) => {
      const code = "const { parentPort, workerData } = require('worker_threads');"
        + "parentPort.postMessage(require('fs').readFileSync(workerData).length)";
      const worker = new Worker(code, { eval: true, workerData: file });
      worker.on("message", (count) => resolve(`read ${count} bytes`));
      worker.on("error", reject);
    }),
  "signal": (pid) => {
    process.kill(Number(pid), "SIGURG");
    return "sent it";
  },
  "renice": (pid) => {
    os.setPriority(Number(pid), os.getPriority(Number(pid)));
    return "changed it";
  },
  "unix stream": (address) => connect({ path: address }),
  "unix listen": (name) =>
    settle((resolve, reject) => {
      const server = net.createServer();
      server.on("error", reject);
      server.listen({ path: `\0${name}` }, () => server.close(() => resolve("listens")));
    }),
  "tcp": (host, port) => connect({ host, port: Number(port) }),
  "udp": (host, port) => ask(host, port, "x"),
  "dns": (host, port) =>
    settle((resolve, reject) => {
      const resolver = new dns.Resolver({ timeout: 500, tries: 1 });
      resolver.setServers([`${host}:${port}`]);
      // the server sends back the question: it was reached when that is what is wrong
      resolver.resolve4("example.com", (error) => {
        const reached = !error || ["ENODATA", "EBADRESP", "EFORMERR", "ESERVFAIL"].includes(error.code);
        return reached ? resolve("got an answer") : reject(error);
      });
    }),
  "listen": (host) =>
    settle((resolve, reject) => {
      const server = net.createServer();
      server.on("error", reject);
      server.listen(0, host, () => server.close(() => resolve("listens")));
    }),
  "http": (host, port) =>
    settle((resolve, reject) => {
      const request = http.request({ host, port, method: "POST", path: "/v1/keys" });
      request.on("error", reject);
      request.on("socket", (opened) => opened.on("connect", () => (request.destroy(), resolve("sent a request"))));
      request.end();
    }),
  "set-id program": (program) => {
    const user = childProcess.execFileSync(program, ["-u"], { stdio: "pipe" }).toString().trim();
    return user === String(process.getuid()) ? "" : `ran as ${user}`;
  },
  "leave groups": () => {
    const before = process.getgroups();
    process.setgroups([65534]);
    process.setgroups(before);
    return "changed them";
  },
};

const tryOne = async (operation, target, other) => {
  try {
    const evidence = await operation(target, other);
    return evidence ? `escaped\t${evidence.replace(/\s+/g, " ")}` : "stopped\tit found nothing";
  } catch (error) {
    return `stopped\t${error.code || ""} ${error.message}`.replace(/\n/g, " ");
  }
};

const main = async () => {
  const lines = [];
  for (const line of fs.readFileSync(path.join(HOME, "attempts.tsv"), "utf-8").split("\n").filter(Boolean)) {
    const [name, wanted, target, other] = line.split("\t");
    const operation = OPERATIONS[wanted];
    const isAbstract = target.startsWith("@"); // whose names older versions of Node fill up with zeros
    if (operation && !isAbstract) lines.push(`${name}\t${await tryOne(operation, target, other)}\n`);
  }
  fs.writeFileSync(path.join(HOME, "report.tsv"), lines.join(""));
  console.log('{"status": "success", "result": "tried"}');
  process.exit(0);
};
main();

# ruff: noqa: E501 a script is easier to read on its line
"""Small scripts of every shape: whatever they can see of how they were started must be the same, cold or warm."""

SURROUNDINGS = """
import json, os, signal, sys, threading
print(sys.argv, sys.path, __file__, __name__, __doc__, __package__, __spec__, sorted(globals()))
print(getattr(sys, "orig_argv", None), sys.flags, sys.executable, sys.prefix, sys.warnoptions)
print(os.getcwd(), sorted(os.environ.items()) == sorted((os.fsdecode(k), os.fsdecode(v)) for k, v in os.environb.items()))
print(json.dumps(dict(os.environ)))
print([n for n in range(200) if os.path.exists("/dev/fd/%d" % n)])
print({s: str(signal.getsignal(s)).split(" at ")[0] for s in signal.valid_signals() if s not in (32, 33)})
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.umask(0o22), os.nice(0))
print(os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), threading.current_thread() is threading.main_thread())
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream.errors, stream.newlines, stream.line_buffering, stream.seekable(), stream.isatty(), stream.fileno())
    print(stream is getattr(sys, "__%s__" % stream.name.strip("<>")), os.get_inheritable(stream.fileno()), stream.write_through)
print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.excepthook is sys.__excepthook__, sys.gettrace())
import __main__
print(sys.modules["__main__"] is __main__, __main__.__dict__ is globals(), type(__loader__), __loader__.path)
"""

SHAPES = {
    "surroundings": SURROUNDINGS,
    "stdin_read": "import sys\nprint(sys.stdin.read())",
    "stdin_lines": "import sys\nprint(sys.stdin.readline(), [line for line in sys.stdin])",
    "stdin_input": "print(input(), input())\ntry:\n    input()\nexcept EOFError as error:\n    print(repr(error))",
    "stdin_bytes": "import sys\nprint(sys.stdin.buffer.read())",
    "stdin_descriptor": "import os\nprint(os.read(0, 5))\nprint(os.read(0, 100000))\nprint(os.read(0, 1))",
    "stdin_ignored": "print('done')",
    "stdin_json": "import json, sys\nprint(json.dumps({'status': 'success', 'result': json.load(sys.stdin)}))",
    "stdout_rewrapped": (
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('你好', end='')"
    ),
    "stdout_reconfigured": "import sys\nsys.stdout.reconfigure(encoding='utf-16-le')\nimport json\nprint(json.dumps({}))",
    "stdout_detached": "import codecs, sys\nsys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach())\nsys.stdout.write('é')",
    "stdout_closed": "import sys\nprint('a')\nsys.stdout.close()",
    "stdout_huge": "import sys\nsys.stdout.write('x' * 3_000_000)\nsys.stderr.write('y' * 300_000)",
    "stdout_unwritable": "import os\nprint('lost')\nos.close(1)",
    "exit_number": "import sys\nprint(1)\nsys.exit(7)",
    "exit_large": "import sys\nsys.exit(0x1ff)",
    "exit_negative": "import sys\nsys.exit(-1)",
    "exit_beyond": "import sys\nsys.exit(1 << 70)",
    "exit_text": "import sys\nsys.exit('no such thing')",
    "exit_none": "import sys\nprint(2)\nsys.exit(None)",
    "exit_true": "import sys\nsys.exit(True)",
    "exit_object": "raise SystemExit((1, 2))",
    "exit_quit": "quit(3)",
    "exit_at_once": "import os\nprint('lost', flush=True)\nos._exit(9)",
    "exit_signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "exit_abort": "import os\nos.abort()",
    "exit_in_thread": "import sys, threading\nt = threading.Thread(target=sys.exit)\nt.start()\nt.join()\nprint('on')",
    "error": "def deep(n):\n    return deep(n - 1) if n else {}['missing']\ndeep(3)",
    "error_chained": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('worse') from error"
    ),
    "error_in_context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]",
    "error_syntax_at_run": "eval('1 +')",
    "error_own_hook": (
        "import sys, traceback\n"
        "def hook(kind, error, trace):\n    print('hook', kind, len(traceback.extract_tb(trace)), sys.exc_info())\n"
        "sys.excepthook = hook\nraise ValueError(1)"
    ),
    "error_of_module": "import nowhere_to_be_found",
    "error_interrupt": "raise KeyboardInterrupt",
    "error_recursion": "def f():\n    f()\ntry:\n    f()\nexcept RecursionError as error:\n    print(error)",
    "error_caught": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()",
    "exit_functions": (
        "import atexit\nclass Bad:\n    __repr__ = lambda self: 'bad'\n    def __call__(self):\n        1 / 0\n"
        "atexit.register(print, 'first in')\natexit.register(Bad())\n"
        "@atexit.register\ndef last():\n    print('last in')\nprint('main')"
    ),
    "exit_functions_after_error": "import atexit\natexit.register(print, 'still')\nraise ValueError(3)",
    "file_left_open": (
        "import os\nold = open('left', 'w')\nold.write('all of it')\n"
        "def keep():\n    return old\n"
    ),
    "file_left_in_a_module": "import string\nstring.kept = open('left', 'w')\nstring.kept.write('all of it')",
    "temporary_file": "import tempfile\nf = tempfile.NamedTemporaryFile(dir='.', prefix='tmp_', delete=True)\nprint(1)",
    "object_dies_last": "class A:\n    def __del__(self):\n        print('gone', __name__)\na = A()\nprint('main')",
    "threads": (
        "import threading, time\nend = threading.Event()\n"
        "def work():\n    end.wait(5)\n    print('worked')\n"
        "threading.Thread(target=work).start()\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "end.set()\nprint(threading.active_count() >= 2)"
    ),
    "thread_pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool:\n    print(list(pool.map(abs, range(-5, 5))))"
    ),
    "processes": (
        "import multiprocessing\n"
        "def double(n):\n    return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n        print(pool.map(double, range(5)))"
    ),
    "processes_spawned": (
        "import multiprocessing\n"
        "def double(n):\n    return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(double, range(5)))"
    ),
    "fork": "import os\nif os.fork() == 0:\n    print('child', flush=True)\n    raise SystemExit\nos.wait()\nprint('parent')",
    "subprocess": (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'import os; print(os.environ.get(\"CALL\"), os.listdir(\"/proc/self/fd\"))'],"
        " capture_output=True, text=True).stdout)\nprint(subprocess.run('exit 3', shell=True).returncode)"
    ),
    "asyncio": (
        "import asyncio\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('/bin/echo', 'hi', stdout=-1)\n"
        "    print((await p.communicate())[0], await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(abs, -2)))\n"
        "asyncio.run(main())"
    ),
    "pickled_classes": (
        "import dataclasses, pickle\n"
        "@dataclasses.dataclass\nclass Point:\n    x: int\n    y: int = 2\n"
        "print(pickle.loads(pickle.dumps(Point(1))), Point.__module__, __annotations__ if '__annotations__' in globals() else 0)"
    ),
    "own_source": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getfile(f), f.__code__.co_filename)",
    "local_modules": (
        "import beside, pack.inner\nfrom pack import other\n"
        "print(beside.value, beside.__file__, pack.inner.value, other.value, beside.started)"
    ),
    "local_module_by_path": "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'vendor'))\nimport colorsys\nprint(colorsys.mine)",
    "local_module_shadows": "import http.cookiejar\nimport calendar\nprint(calendar.mine, http.cookiejar.timegm)",
    "data_file": "print(open('data.txt').read())",
    "logging": (
        "import logging, sys\nlogging.basicConfig(level='INFO', format='%(name)s %(message)s %(filename)s %(lineno)d')\n"
        "logging.info('to stderr')\nlogging.getLogger('x').error('é')\n"
        "print(logging.LogRecord('', 1, '', 1, '', (), None).relativeCreated < 5000)"
    ),
    "warnings": "import warnings\ndef f():\n    warnings.warn('careful', stacklevel=2)\nf()\nwarnings.warn('old', DeprecationWarning)",
    "environment_first": "import os\nos.environ['PYTHON_COLORS'] = '1'\nimport csv\nprint(os.environ['CALL'], os.getenv('NOT'))",
    "imports_that_may_fail": "try:\n    import not_there as j\nexcept ImportError:\n    import json as j\nprint(j.dumps(1))",
    "like_requests": "import base64, hashlib, http.client, ssl, urllib.request, uuid, zlib\nprint(uuid.uuid5(uuid.NAMESPACE_DNS, 'a'))",
    "installed": "import click, orjson, yaml\nprint(orjson.dumps({'a': click.style('b')}), yaml.safe_load('a: 1'))",
    "installed_dies": "import orjson\nraise ValueError(orjson.dumps(1))",
    "native_output": "import ctypes\nctypes.CDLL(None).puts(b'from C')\nprint('from Python', flush=True)",
    "coding": "# -*- coding: latin-1 -*-\nprint(ascii('\u00e9'))",
    "future": "from __future__ import annotations\ndef f(x: Nothing): ...\nprint(f.__annotations__)",
    "profile": "import gc, sys\nprint(gc.isenabled(), gc.get_threshold(), sys.getprofile(), gc.callbacks)",
    "signals": "import signal, os\nsignal.signal(signal.SIGUSR1, lambda n, f: print('heard', n))\nos.kill(os.getpid(), 10)\nsignal.alarm(0)",
    "children_are_seen": "import os, signal\np = os.spawnlp(os.P_NOWAIT, 'true', 'true')\nprint(os.waitpid(-1, 0)[1], signal.getsignal(17))",
}  # fmt: skip

BESIDE = {
    "beside.py": "import os, sys, textwrap\nvalue = 1\nstarted = len(sys.argv)\n",
    "pack/__init__.py": "from . import inner\n",
    "pack/inner.py": "import decimal\nvalue = 2\n",
    "pack/other.py": "from .inner import value\n",
    "vendor/colorsys.py": "mine = True\n",
    "calendar.py": "mine = True\ntimegm = None\n",
    "data.txt": "data",
}

NODE = {
    "surroundings.js": (
        "const fs = require('fs');\n"
        "console.log(process.argv, __filename, __dirname, require.main === module, process.execArgv, process.cwd());\n"
        "console.log(JSON.stringify(process.env), Object.keys(require.cache), module.children.length, module.parent);\n"
        "console.log(fs.readdirSync('/proc/self/fd').length, process.stdin.isTTY, module.paths[0]);"
    ),
    "stdin_iterated.js": (
        "(async () => { let told = ''; for await (const chunk of process.stdin) told += chunk;\n"
        "console.log(told.length, told.slice(0, 20)); })();"
    ),
    "stdin_at_once.js": "console.log(require('fs').readFileSync(0, 'utf8').length);",
    "stdin_ignored.js": "console.log('done');",
    "exit.js": "process.on('exit', (code) => console.log('bye', code)); process.exit(5);",
    "error.js": "function deep() { throw new Error('no'); }\ndeep();",
    "rejection.js": "Promise.reject(new Error('nobody caught it'));",
    "module.mjs": (
        "import { argv } from 'node:process';\nimport fs from 'node:fs';\n"
        "console.log(argv, import.meta.url, fs.readFileSync(0, 'utf8').length, process.env.CALL);"
    ),
    "forks.js": (
        "const { fork } = require('child_process');\n"
        "if (process.argv[2] === 'child') { process.send(process.execArgv); process.disconnect(); }\n"
        "else fork(__filename, ['child']).on('message', (m) => console.log('told', m));"
    ),
    "works.js": (
        "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
        "if (isMainThread) new Worker(__filename).on('message', (m) => console.log(m)); else parentPort.postMessage('hi');"
    ),
}

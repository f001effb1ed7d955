"""The TypeScript client: made from the OpenAPI of this version, and used by programs against a real server."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from clients.typescript.generate import TARGET, load_document, write_client
from tests.clients.harness import DRIVERS
from tests.clients.install import install_node_clients
from tests.clients.test_pages import PAGES, run_program
from tests.web.server_process import ServerProcess, start_server

pytestmark = pytest.mark.requirement("client:typescript")

TSC_S: Final = 300
STRICT: Final = {
    **dict.fromkeys(("strict", "exactOptionalPropertyTypes", "noUncheckedIndexedAccess", "noImplicitOverride"), True),
    **dict.fromkeys(("noUnusedLocals", "noUnusedParameters", "noImplicitReturns", "noFallthroughCasesInSwitch"), True),
    **dict.fromkeys(("erasableSyntaxOnly", "isolatedModules", "verbatimModuleSyntax"), True),
    "target": "es2022",
    "module": "nodenext",
    "lib": ["es2023", "dom", "dom.iterable"],
    "types": [],
    "rootDir": ".",
    "outDir": "built",
}


def test_the_committed_client_is_made_from_the_openapi_of_this_version() -> None:
    made = write_client(load_document())
    assert made == TARGET.read_text("utf-8"), "run 'make clients' and commit the result"


def test_types_are_written_as_the_schemas_say() -> None:
    schemas: dict[str, Any] = {
        "Kind": {"enum": ["a", "b"], "type": "string"},
        "Row": {
            "description": "A row.",
            "type": "object",
            "required": ["id", "kinds"],
            "properties": {
                "id": {"type": "string", "description": "Its id."},
                "kinds": {"type": "array", "items": {"$ref": "#/components/schemas/Kind"}},
                "x-count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
                "any": {},
            },
        },
    }
    operation = {
        "description": "Show a row.",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "wait", "in": "query", "schema": {"type": "boolean"}, "description": "Seconds."},
        ],
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Row"}}}}},
    }
    document = {"components": {"schemas": schemas}, "paths": {"/rows/{id}": {"post": operation}}}
    assert """export type Kind = "a" | "b";

/** A row. */
export interface Row {
  /** Its id. */
  id: string;
  kinds: Array<Kind>;
  "x-count"?: number | null;
  by_name?: Record<string, number>;
  any?: unknown;
}

/** Every request of the API: what it takes, and what it answers with. */
export interface Operations {
  /** Show a row. */
  "POST /rows/{id}": {
    options: {
      path: {
        id: string;
      };
      query?: {
        /** Seconds. */
        wait?: boolean;
      };
      body?: Record<string, unknown>;
    };
    result: Row;
  };
}
""" in write_client(document)


def compile_program(program: str, place: Path) -> Path:
    """Return the JavaScript of a program that uses the client, checked as strictly as TypeScript can."""
    tsc = install_node_clients() / "node_modules/.bin/tsc"
    place.mkdir()
    shutil.copy(TARGET, place)
    (place / "package.json").write_text('{"type": "module"}')
    (place / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT, "files": ["program.ts"]}))
    (place / "program.ts").write_text(program, "utf-8")
    done = subprocess.run(
        [tsc],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=TSC_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return place / "built/program.js"


async def run_javascript(server: ServerProcess, program: Path, *arguments: str) -> str:
    return await run_program(server, "node", "--experimental-websocket", program, *arguments, given="")


async def test_a_program_calls_tools_chats_and_follows_events(tmp_path: Path) -> None:
    program = compile_program((DRIVERS / "typescript_client.ts").read_text("utf-8"), tmp_path / "program")
    async with start_server(tmp_path) as server:
        (server.project / "README.md").write_text("# My project\n")
        got = json.loads(await run_javascript(server, program, server.url, server.key))
    assert "call.finished" in got.pop("events")
    chat, (is_same, streamed) = got.pop("chat"), got.pop("streams")
    assert is_same
    assert "> ✓ LS: Listed 1 entry in '.'." in chat
    assert streamed == chat
    assert got == {
        "call": "1\t# My project",
        "failure": "NOT_FOUND",
        "ids": ["call_7", "toolu_7", False],
        "tool": ["LS", "read", "LS"],
        "page": [1, "LS", "string"],
        "status": ["sqlite", True, True],
        "text": True,
        "archive": True,
        "human": "string",
        "error": [404, "not_found", "http.not_found", "there is no call 'a b?c'"],
        "refused": 401,
        "aborted": "AbortError",
        "backend": [True, "Read"],
    }


NO_SOCKET = """import { Toolyard, type EventSocketConstructor } from "./toolyard.js";
delete (globalThis as { WebSocket?: EventSocketConstructor }).WebSocket;
const yard = new Toolyard({ url: process.argv[2], key: process.argv[3] ?? "" });
try {
  for await (const event of yard.events({ cursor: 0 })) console.log(event.seq);
} catch (error) {
  console.log(String(error));
}
declare const process: { argv: string[] };
"""


async def test_events_without_a_websocket_say_so_at_once(tmp_path: Path) -> None:
    program = compile_program(NO_SOCKET, tmp_path / "program")
    async with start_server(tmp_path) as server:
        printed = await run_javascript(server, program, server.url, server.key)
    assert printed.strip() == "TypeError: there is no WebSocket here: pass one to new Toolyard()"


@pytest.mark.requirement("clients:pages")
async def test_the_programs_of_the_page_run_as_they_are_written(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server:
        for name in ("a.txt", "b.txt", "README.md"):
            (server.project / name).write_text("x\n")
        text = (PAGES / "typescript.md").read_text("utf-8").replace("http://127.0.0.1:6005", server.url)
        blocks = re.findall(r"^```ts\n(.*?)^```$", text.replace('"KEY"', f'"{server.key}"'), re.MULTILINE | re.DOTALL)
        program = compile_program("".join(blocks), tmp_path / "page")
        printed = (await run_javascript(server, program)).splitlines()
    assert printed[:2] == ["success Listed 3 entries in '.'.", "tool call_7"]
    assert sum("> ✓ LS: Listed 3 entries in '.'." in line for line in printed) == 2
    assert "404 not_found there is no call 'call_0'" in printed
    assert (printed[-2].split()[1], printed[-1].split()[1]) == ("call.finished", "success")


ABORTS = """import { Toolyard } from "./toolyard.js";
const yard = new Toolyard({ url: process.argv[2], key: process.argv[3] ?? "" });
for (let number = 0; number < 5; number++) await yard.call("LS", { path: "." });
const stop = new AbortController();
for await (const event of yard.events({ cursor: 0, signal: stop.signal })) {
  console.log(event.seq);
  stop.abort();
}
declare const process: { argv: string[] };
"""


async def test_events_end_with_their_signal_although_more_have_arrived(tmp_path: Path) -> None:
    program = compile_program(ABORTS, tmp_path / "program")
    async with start_server(tmp_path) as server:
        printed = (await run_javascript(server, program, server.url, server.key)).split()
    assert printed == ["1"]

"""The paths of the server: the console's pages, and where everything else begins.

The table of pages is ``console/src/pages.ts``; the build writes it into ``build.json``, and the server takes it from
there. Every key may open every page; what it shows is up to the API. ``public_url`` may have none of these paths, as
nobody could tell the two apart.
"""

import json
from pathlib import Path
from typing import Final

_BUILD: Final = Path(__file__).parent / "web" / "console" / "build.json"
CONSOLE_PAGES: Final = tuple(f"/{name}" for name in json.loads(_BUILD.read_bytes())["pages"])
SERVICE_WORKER: Final = "/service-worker.js"  # public, so that a browser whose session has ended still updates it
_OTHERS: Final = (
    *(
        "v1",
        "mcp",
        "media",
        "metrics",
        "healthz",
        "readyz",
        "openapi.json",
        "plugin-callback",
        "VCPlog",
        "vcpinfo",
        "vcp-distributed-server",
        "api",
    ),
    *("admin_api", "login", "login.css", "login.js", "logout", "ws", "ws-ticket", "docs", "docs.css", "console"),
    SERVICE_WORKER.removeprefix("/"),
)
OWN_PATHS: Final = frozenset({*(page.removeprefix("/") for page in CONSOLE_PAGES), *_OTHERS})

"""Run every measurement, or the ones named, and print their tables."""

import sys

from bench import (
    bypasses,
    console,
    engine,
    files,
    files_search,
    gateway,
    hostile,
    mcp_calls,
    offer,
    plugins,
    plugins_heavy,
    protocols,
    startup,
    vcp_bridge,
)

ALL = {
    "startup": startup.main,
    "files": files.main,
    "search": files_search.main,
    "protocols": protocols.main,
    "plugins": plugins.main,
    "heavy": plugins_heavy.main,
    "engine": engine.main,
    "gateway": gateway.main,
    "hostile": hostile.main,
    "mcp": mcp_calls.main,
    "bridge": vcp_bridge.main,
    "offer": offer.main,
    "console": console.main,
    "bypasses": bypasses.main,
}

if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ALL]
    if unknown:
        sys.exit(f"no measurement is called '{unknown[0]}': they are {', '.join(ALL)}")
    for name in sys.argv[1:] or ALL:
        ALL[name]()

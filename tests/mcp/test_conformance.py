"""The official conformance suite for servers. It needs npm and Node 22, so it runs where somebody has put it:

npm install @modelcontextprotocol/conformance node@22 && MCP_CONFORMANCE=$PWD pytest tests/mcp/test_conformance.py
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(os.environ.get("MCP_CONFORMANCE", "/nowhere")) / "node_modules"


@pytest.mark.skipif(not SUITE.is_dir(), reason="MCP_CONFORMANCE names no folder with the suite")
@pytest.mark.requirement("mcp:server")
def test_the_conformance_suite_finds_nothing(tmp_path: Path) -> None:
    program = [str(SUITE / ".bin/node"), str(SUITE / "@modelcontextprotocol/conformance/dist/index.js")]
    command = [sys.executable, "-m", "tests.mcp.conformance", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            done = subprocess.run(
                [*program, "server", "--url", url],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                cwd=tmp_path,
            )
        finally:
            server.terminate()
    results = re.findall(r"(\S+): (\d+) passed, (\d+) failed", done.stdout)
    assert len(results) >= 30, done.stdout + done.stderr
    assert [name for name, _, failed in results if failed != "0"] == []

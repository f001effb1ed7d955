"""Prompts of an installation, filled twice: by the code of a VCPToolBox tree, and by ours."""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from toolyard.dialects.vcp_nodes import NO_NODES
from toolyard.gateway.chat_ports import PromptRequest
from toolyard.protocol.json import Json
from toolyard.protocol.records.task_record import Task
from toolyard.vcp.prompt_files import PromptFiles
from toolyard.vcp.prompts import InstalledPrompts, PromptPorts

NOW: Final = datetime(2026, 11, 15, 1, 50, 28, tzinfo=UTC)
ME: Final = "key:me"
_HOST: Final = Path(__file__).with_name("ask_prompts.js")


@dataclass(kw_only=True)
class Tree:
    """The prompts of an installation that a test writes."""

    root: Path
    settings: str = ""
    agents: Mapping[str, str] = field(default_factory=dict)  # the text by name; its file is NAME.txt
    toolboxes: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # files of TVStxt
    model_prompts: Any = None
    emoji: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)  # files of VCPAsyncResults

    def write(self) -> Path:
        named = {f"Agent/{name}.txt": text for name, text in self.agents.items()}
        named |= {f"TVStxt/Box{name}.txt": text for name, text in self.toolboxes.items()}
        named |= {f"TVStxt/{name}": text for name, text in self.texts.items()}
        named |= {f"Plugin/EmojiListGenerator/generated_lists/{name}.txt": text for name, text in self.emoji.items()}
        named |= {f"VCPAsyncResults/{name}.json": text for name, text in self.results.items()}
        named["config.env"] = self.settings
        named["agent_map.json"] = json.dumps({name: f"{name}.txt" for name in self.agents})
        boxes = {name: {"file": f"Box{name}.txt", "description": "a box"} for name in self.toolboxes}
        named["toolbox_map.json"] = json.dumps(boxes)
        if self.model_prompts is not None:
            named["sarprompt.json"] = json.dumps(self.model_prompts)
        for name, text in named.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return self.root


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is filled in an installation."""

    requests: list[tuple[str, list[Json]]]  # the model, and the messages
    statics: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)


def make_prompts(root: Path, **ports: Any) -> InstalledPrompts:
    async def no_task(plugin: str, task: str, caller: str) -> Task | None:
        return None

    usual: dict[str, Any] = {"now": lambda: NOW, "task": no_task, "statics": dict, "tools": dict}
    return InstalledPrompts(PromptFiles(root), PromptPorts(**(usual | ports)))


async def fill_messages(root: Path, messages: list[Json], model: str = "m", **ports: Any) -> list[Any]:
    prompts = make_prompts(root, **ports)
    return (await prompts.fill(PromptRequest(messages=messages, model=model, caller=ME))).messages


async def fill_system(root: Path, text: str, model: str = "m", **ports: Any) -> str:
    (message,) = await fill_messages(root, [{"role": "system", "content": text}], model, **ports)
    return str(message["content"])


async def ask_ours(root: Path, asked: Asked) -> list[list[Any]]:
    files = PromptFiles(root)
    port = files.variables.get("PORT", "")
    ports = {"statics": lambda: asked.statics, "tools": lambda: asked.tools, "port": lambda: port}
    return [await fill_messages(root, messages, model, **ports) for model, messages in asked.requests]


def ask_vcptoolbox(tree: Path, root: Path, asked: Asked) -> list[list[Any]]:
    """Fill the same with the code of a tree, whose modules are linked into the folder of the prompts."""
    for name in ("modules", "node_modules"):
        if not (root / name).exists():
            (root / name).symlink_to(tree / name)
    given = {
        "now": NOW.isoformat(), "statics": asked.statics, "descriptions": asked.tools, "nodes": NO_NODES,
        "requests": [{"model": model, "messages": messages} for model, messages in asked.requests],
    }  # fmt: skip
    run = subprocess.run(
        ["node", "--max-old-space-size=512", "--preserve-symlinks", "--preserve-symlinks-main", str(_HOST), str(root)],
        input=json.dumps(given).encode(),
        capture_output=True,
        env={"PATH": os.environ["PATH"]},
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    made: list[list[Any]] = json.loads(run.stdout)
    return made


def make_random(root: Path, seed: int) -> Asked:
    """Write prompts that name each other in many ways, and return requests that use them."""
    dice = random.Random(seed)
    letters = "ABCDEF"
    agents = [f"Nova{one}" for one in letters[:4]] + ["小克"]
    boxes = [f"Box{one}" for one in letters[:3]]
    files = [f"text{one}.txt" for one in letters]
    variables = [f"{kind}{one}" for one in letters for kind in ("Tar", "Var")]
    dice.shuffle(variables)
    statics = [f"Static{one}" for one in letters[:4]]
    tools = [f"VCPTool{one}" for one in letters[:4]]
    rare = ["Date", "Time", "Today", "Festival", "Port", "Image_Key", "VCPAllTools", "VCPDistributedServerList",
            "SarPrompt1", "SarPrompt2", "SarPrompt7", "SarPromptAll", "通用表情包", "缺少表情包", "Nobody", "a b",
            "VCP_ASYNC_RESULT::P::done", "VCP_ASYNC_RESULT::P::failed", "VCP_ASYNC_RESULT::P::later"]  # fmt: skip
    roles = [f"<<<[{end}ROLE_DIVIDE_{role}]>>>" for end in ("", "END_") for role in ("USER", "ASSISTANT")]
    words = ["hello", "before", "秘密", "\n", "\r\n", "  ", "{ ", "}}", "「始」", "[系统提示:]", *roles,
             "[[VCPStaticFold::Full]]", "[[VCPStaticFold::lite]]", "<<<[TOOL_REQUEST]>>>",
             "<<<[END_TOOL_REQUEST]>>>"]  # fmt: skip

    def text(names: list[str], most: int = 12) -> str:
        pieces = []
        for _ in range(dice.randint(0, most)):
            if dice.random() < 0.5:
                prefix = dice.choice(["", "", "", "agent:", "toolbox:"])
                pieces.append(f"{{{{{prefix}{dice.choice(names)}}}}}")
            else:
                pieces.append(dice.choice(words))
        return "".join(pieces)

    def fold(names: list[str]) -> str:
        blocks = [text(names, 3)] if dice.random() < 0.5 else []
        for _ in range(dice.randint(0, 3)):
            about = dice.choice(["", "", " ::desc: about it", " "])
            blocks += [f"[===vcp_fold: {dice.choice(['0.0', '0.3', '0.5', '.2', '1'])}{about}===]", text(names, 3)]
        return "\n".join(blocks)

    everything = [*agents, *boxes, *variables, *variables, *statics, *tools, *rare]
    # A file names only later ones: VCPToolBox never comes back from a file that contains itself.
    order = {name: at for at, name in enumerate(files)}
    of_file = dict(zip(files, dice.sample(variables, len(files)), strict=True))
    plain = [name for name in variables if name not in of_file.values()]
    harmless = [*agents, *boxes, *plain, *statics, *tools, *[one for one in rare if "Sar" not in one]]

    def names_after(file: str) -> list[str]:
        return [*harmless, *[of_file[name] for name in files if order[name] > order[file]]]

    settings = ["PORT=6005", "Image_Key=image-key", "DEFAULT_TIMEZONE=Asia/Shanghai"]
    for name in variables:
        file = next((file for file, own in of_file.items() if own == name), None)
        quoted = text(harmless, 4)
        quoted = quoted.replace("'", "").replace("\r", "").replace("\n", " ").replace("text", "")
        settings.append(f"{name}={file}" if file else f"{name}='{quoted}'")
    settings += [
        "Detector1='秘密'",
        "Detector_Output1='public {{Date}}'",
        "SuperDetector2='hello'",
        "SuperDetector_Output2='HELLO'",
        'RoleDividerIgnoreList=["before"]',
    ]
    switches = ("Enable{}", "{}ScanSystem", "{}Assistant", "{}RemoveDisabledTags")
    settings += [f"{name.format('RoleDivider')}={dice.choice(['true', 'true', 'false'])}" for name in switches]
    Tree(
        root=root,
        settings="\n".join(settings) + "\n",
        agents={name: text(everything, 8) for name in agents},
        toolboxes={name: fold(everything) for name in boxes},
        texts={name: text(names_after(name), 8) for name in files},
        model_prompts=[
            {"promptKey": "SarPrompt1", "models": ["GPT-x", " m "], "content": text([*plain, *statics], 4)},
            {"promptKey": "SarPrompt2", "models": ["pt-"], "content": "for part", "matchMode": "includes"},
        ],
        emoji={"通用表情包": "|".join(f"{number}.jpg" for number in range(9))},
        results={"P-done": '{"message": "is ready"}', "P-failed": '{"status": "Failed", "error": {"a": [1, "二"]}}'},
    ).write()
    requests: list[tuple[str, list[Json]]] = []
    for _ in range(40):
        messages: list[Json] = []
        for _ in range(dice.randint(1, 4)):
            role = dice.choice(["system", "system", "user", "assistant"])
            head = dice.choice(["", "", "[系统提示:]", "[系统邀请指令:]", "[系统通知]"]) if role == "user" else ""
            content = head + text(everything)
            parts: list[Json] = [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": "x"}},
                                 {"type": "text", "text": text(everything)}]  # fmt: skip
            messages.append({"role": role, "content": parts if dice.random() < 0.2 else content})
        requests.append((dice.choice(["m", "gpt-x", "other", ""]), messages))
    blocks = [(0.5, "high"), ("0.1", "low"), (0.3, "")]
    json_fold = {
        "vcp_dynamic_fold": True,
        "fold_blocks": [{"threshold": threshold, "content": content} for threshold, content in blocks],
    }
    printed = [text(["Nobody"], 2) or "static", fold(["Nobody"]), json.dumps(json_fold), '{"vcp_dynamic_fold": true}']
    return Asked(
        requests=requests,
        statics=dict(zip(statics, (one.strip() for one in printed), strict=True)),
        tools={name: f"- {name} 命令:\n  「始」{name}「末」" for name in tools},
    )


def copy_prompts(tree: Path, root: Path) -> Asked:
    """Copy the prompts that come with a tree; return requests that use each of them."""
    for name in ("Agent", "TVStxt"):
        shutil.copytree(tree / name, root / name)
    shutil.copyfile(tree / "toolbox_map.json", root / "toolbox_map.json")
    shutil.copyfile(tree / "agent_map.json.example", root / "agent_map.json")
    shutil.copyfile(tree / "config.env.example", root / "config.env")
    files = PromptFiles(root)
    own = [name for name in files.variables if name.startswith(("Tar", "Var"))]
    names = [*files.agents, *files.toolboxes, *own]
    texts = [f"{{{{{name}}}}}" for name in names] + ["".join(f"{{{{{name}}}}}\n" for name in names)]
    heads = {"system": "", "user": "[系统提示:]"}
    requests: list[tuple[str, list[Json]]] = [
        ("gemini-x", [{"role": role, "content": head + text}]) for text in texts for role, head in heads.items()
    ]
    return Asked(requests=requests)

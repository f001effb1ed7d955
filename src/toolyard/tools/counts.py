"""Numbers of things in the texts of tools, each a message with the right plural."""

from toolyard.message import Message


def count_files(count: int) -> Message:
    return Message("1 file") if count == 1 else Message("{count} files", count=count)


def count_entries(count: int) -> Message:
    return Message("1 entry") if count == 1 else Message("{count} entries", count=count)


def count_items(count: int) -> Message:
    return Message("1 item") if count == 1 else Message("{count} items", count=count)


def count_matches(count: int) -> Message:
    return Message("1 match") if count == 1 else Message("{count} matches", count=count)


def count_places(count: int) -> Message:
    return Message("1 place") if count == 1 else Message("{count} places", count=count)


def count_edits(count: int) -> Message:
    return Message("1 edit") if count == 1 else Message("{count} edits", count=count)


def count_pages(count: int) -> Message:
    return Message("1 page") if count == 1 else Message("{count} pages", count=count)


def count_left_out(hidden: int, ignored: int) -> str:
    """Return the number of hidden and of ignored entries; empty when there are none."""
    if hidden and ignored:
        return Message("{hidden} hidden and {ignored} ignored", hidden=hidden, ignored=ignored)
    if hidden:
        return Message("{count} hidden", count=hidden)
    return Message("{count} ignored", count=ignored) if ignored else ""

"""Loading of a command's modules without the garbage collector.

Nothing of a module is garbage, and searching for it takes an eighth of the time to load them (bench row
"toolyard call LS"). What is loaded is then left out of later searches.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

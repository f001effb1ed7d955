"""Run every measurement, or the ones named, and print their tables."""

import sys

from bench import files, files_search, protocols, startup

ALL = {"startup": startup.main, "files": files.main, "search": files_search.main, "protocols": protocols.main}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()

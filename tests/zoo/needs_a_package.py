"""Imports what nobody has."""

import no_such_package_here  # type: ignore[import-not-found]  # noqa: F401

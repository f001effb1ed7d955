"""QR codes as rows of modules, for terminals and the console."""

from typing import Final

BORDER: Final = 4  # modules that must stay light around a code


def make_qr_matrix(text: str) -> list[list[bool]]:
    """Return the modules of a QR code with its border; dark ones are True."""
    import segno

    code = segno.make_qr(text, error="l", boost_error=False)
    return [[bool(module) for module in row] for row in code.matrix_iter(border=BORDER)]

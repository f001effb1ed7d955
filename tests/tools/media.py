"""The smallest files of each kind that Read knows, written byte by byte."""

import struct
import zlib

PNG = (
    b"\x89PNG\r\n\x1a\n"
    + struct.pack(">I", 13)
    + b"IHDR"
    + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    + struct.pack(">I", zlib.crc32(b"IHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)))
)
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data\0\0\0\0"
)
MP4 = struct.pack(">I", 24) + b"ftypisom\0\0\0\0isommp41"


def pdf(*pages: str, extra: bytes = b"") -> bytes:
    """A PDF with one page for each text; ``extra`` goes into the trailer."""
    kids = b" ".join(b"%d 0 R" % (3 + 2 * number) for number in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages))]
    for number, text in enumerate(pages):
        font = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources %s >>"
            % (4 + 2 * number, font)
        )
        lines = b" ".join(b"(%s) Tj 0 -14 Td" % line.encode("ascii") for line in text.split("\n"))
        stream = b"BT /F1 12 Tf 72 720 Td " + lines + b" ET"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    raw = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, item in enumerate(objects, 1):
        offsets.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = len(raw)
    raw += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    raw += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    raw += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, extra, table)
    return bytes(raw)

"""Packs what the page contains. The files of results/ are not changed."""

import base64
import gzip
import io
from pathlib import Path

COLOURS = 256


def small(png):
    """A PNG's bytes with at most COLOURS colours: a quarter of the size, with no visible difference."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # no dithering: its dots do not compress, and do not belong in a chart
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    # white remains white; the octree would replace it by the mean of its leaf
    few.putpalette([255 if value >= 253 else value for value in few.getpalette()])
    written = io.BytesIO()
    few.save(written, "png", optimize=True)
    return min(png, written.getvalue(), key=len)


def picture(png):
    """base64 of the small form of a PNG's bytes."""
    return base64.b64encode(small(png)).decode()


def table(path):
    """base64 of a CSV file's gzip, a tenth of its size. The page's script unpacks it when it is saved."""
    return base64.b64encode(gzip.compress(Path(path).read_bytes(), 9, mtime=0)).decode()

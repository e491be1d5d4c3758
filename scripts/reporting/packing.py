"""What the page carries in itself, packed: the files of results/ stay as they are."""

import base64
import gzip
import io
from pathlib import Path

COLOURS = 256


def small(png):
    """A PNG's bytes with at most COLOURS colours: a quarter of the size, and the same to the eye."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    # no dithering, whose dots neither compress nor belong to a chart
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    # white stays white, which the octree takes for the mean of its leaf
    few.putpalette([255 if value >= 253 else value for value in few.getpalette()])
    written = io.BytesIO()
    few.save(written, "png", optimize=True)
    return min(png, written.getvalue(), key=len)


def picture(png):
    """base64 of the small form of a PNG's bytes."""
    return base64.b64encode(small(png)).decode()


def table(path):
    """base64 of a CSV file's gzip, a tenth of its size; the page's script unpacks it where it is saved."""
    return base64.b64encode(gzip.compress(Path(path).read_bytes(), 9, mtime=0)).decode()

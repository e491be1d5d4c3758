"""Files of results/ as the page contains them."""

import base64
import gzip
from pathlib import Path


def picture(path):
    """base64 of a PNG file, which is small as `plots.style.save` writes it."""
    return base64.b64encode(Path(path).read_bytes()).decode()


def table(path):
    """base64 of a CSV file's gzip, a tenth of its size. The page's script unpacks it when it is saved."""
    return base64.b64encode(gzip.compress(Path(path).read_bytes(), 9, mtime=0)).decode()

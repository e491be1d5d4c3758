"""Read files in IDX, the format of MNIST, compressed or not."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from study.configuration.data_set_keys import Idx
from study.data.downloads import looks_like_html

UNSIGNED_BYTE = 0x08  # the only type in MNIST's files


def read_idx(path, dimensions):
    """Read an array of unsigned bytes with `dimensions` axes. Raises ValueError for other files.

    The format is two zero bytes, the type, the number of axes, each axis's length in four bytes
    (big-endian), and the values.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    if looks_like_html(content[:512]):
        raise ValueError(f"{path}: is a web page, not an IDX file; delete it and download it again")
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except EOFError:
            raise ValueError(
                f"{path}: the compressed file is cut off; delete it and download it again"
            ) from None
        except (OSError, zlib.error) as error:
            raise ValueError(
                f"{path}: the compressed file is damaged ({error}); delete it and download it again"
            ) from None
    elif path.suffix == ".gz":
        raise ValueError(f"{path}: is not a gzip file; delete it and download it again")
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if content[:4] != magic:
        raise ValueError(
            f"{path}: the magic number is 0x{content[:4].hex()}, not 0x{magic.hex()}: this is not an "
            f"IDX file of unsigned bytes with {dimensions} axes"
        )
    start = 4 + 4 * dimensions
    sizes = tuple(map(int, np.frombuffer(content[4:start].ljust(start - 4, b"\0"), ">u4")))
    if len(content) - start != math.prod(sizes):
        raise ValueError(
            f"{path}: its header announces {math.prod(sizes)} values, but "
            f"{max(0, len(content) - start)} follow; delete it and download it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


def read_images(files: Idx):
    """Read the images and labels of a data set and, if it has one, of its test part.

    Returns X (n, rows * columns) and y (n,) as unsigned bytes, the pixels' names, and the number of
    training rows (None without a test part). Test rows come last.
    """
    images, labels = [], []
    for image, label in ((files.images, files.labels), (files.test_images, files.test_labels)):
        if image is None:
            continue
        images.append(read_idx(image, 3))
        labels.append(read_idx(label, 1))
        if len(images[-1]) != len(labels[-1]):
            raise ValueError(
                f"{image} has {len(images[-1])} images, but {label} {len(labels[-1])} labels"
            )
        if images[-1].shape[1:] != images[0].shape[1:]:
            raise ValueError(f"{image}: its images have another size than the training images")
    _, height, width = images[0].shape
    X = np.concatenate([image.reshape(len(image), -1) for image in images])
    columns = tuple(f"pixel_{row}_{column}" for row in range(height) for column in range(width))
    return X, np.concatenate(labels), columns, len(images[0]) if len(images) > 1 else None

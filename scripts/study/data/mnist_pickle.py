"""Write MNIST's arrays, which packages carry as one gzipped pickle, as IDX files.

The pickle has three pairs (images, labels): 50,000 and 10,000 training images, and the 10,000 of the test.
An image is 784 numbers, its pixels (0 to 255) divided by 256.
"""

import gzip
import pickle
import zlib

import numpy as np

UNSIGNED_BYTE = 0x08  # IDX's number of this type
SIDE = 28
CHUNK = 5000  # images that are converted at once, to save memory
# Part of MNIST -> pairs of the pickle, place in the pair.
PARTS = {
    "train-images": ((0, 1), 0),
    "train-labels": ((0, 1), 1),
    "t10k-images": ((2,), 0),
    "t10k-labels": ((2,), 1),
}
# A pickle is a program that calls whatever it names. The three names of NumPy's arrays are all that this
# one needs.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _Arrays(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"names {module}.{name}, which is no part of an array")
        return _ALLOWED[module, name]


def write_idx(source, part, out):
    """Write a part of the pickle in an open file `source` to the path `out`, as gzipped IDX.

    part: a key of `PARTS`. Raises ValueError for a pickle that is not MNIST's.
    """
    if part not in PARTS:
        raise ValueError(f"MNIST has no part {part!r}, but {', '.join(PARTS)}")
    pairs, place = PARTS[part]
    try:
        with gzip.open(source) as content:
            loaded = _Arrays(content, encoding="bytes").load()  # Python 2 wrote the pickle
        arrays = [loaded[pair][place] for pair in pairs]
        blocks = [_bytes(array) for array in arrays]
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"the compressed pickle is damaged ({error})") from None
    except Exception as error:  # an unpickler may raise anything
        raise ValueError(f"the pickle is not MNIST's ({error})") from None
    sizes = [sum(map(len, blocks)), *blocks[0].shape[1:]]
    header = bytes((0, 0, UNSIGNED_BYTE, len(sizes))) + np.array(sizes, ">u4").tobytes()
    # Without a time stamp, the same arrays give the same file.
    with out.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as target:
        target.write(header)
        for block in blocks:
            target.write(block.tobytes())


def _bytes(array):
    """Labels, or images in place of pixels divided by 256, as unsigned bytes."""
    images = array.ndim == 2
    result = np.empty(array.shape, np.uint8)
    for start in range(0, len(array), CHUNK):
        chunk = array[start : start + CHUNK] * (256 if images else 1)
        result[start : start + CHUNK] = chunk
        if not np.array_equal(result[start : start + CHUNK], chunk):
            raise ValueError("its numbers are no pixels divided by 256")
    return result.reshape(-1, SIDE, SIDE) if images else result

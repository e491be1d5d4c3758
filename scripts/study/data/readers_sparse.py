"""Read documents in the format of RCV1 (Lewis, Yang, Rose, Li, JMLR 5, 2004): topics and term weights."""

import math

import numpy as np

from study.configuration.data_set_keys import Sparse
from study.data.readers_text import brief, open_text

# Shifts and factors of the hash splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
SPLITMIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def read_documents(source: Sparse):
    """X (n, columns), labels (n,) and column names. The rows are the lines of `vectors`, in order.

    A line of `vectors` is "<document> <term>:<weight> ..", and a line of `topics` "<topic> <document> 1".
    The label of a document is the chosen topic, or "not <topic>". Raises ValueError, with file and line,
    for any other line.
    """
    topic, columns = source.topic, source.columns
    chosen = _documents(source.topics, topic)
    rows, labels = [], []
    for where, document, *terms in _lines(source.vectors):
        pairs = [term.partition(":") for term in terms]
        try:
            numbers = np.array([int(name) for name, _, _ in pairs], dtype=np.int64)
            weights = np.array([float(weight) for _, _, weight in pairs])
        except (ValueError, OverflowError):
            weights = np.array([math.nan])
        if not np.isfinite(weights).all():
            raise ValueError(f"{where}: a term is not <whole number>:<weight>")
        place, sign = fold(numbers, columns)
        row = np.zeros(columns)
        np.add.at(row, place, sign * weights)
        rows.append(row)
        labels.append(topic if document in chosen else f"not {topic}")
    if not rows:
        raise ValueError(f"{source.vectors}: has no rows")
    return np.array(rows), np.array(labels), tuple(f"term_{k}" for k in range(columns))


def fold(numbers, columns):
    """The column and sign of each term, from a hash of the term's number, so independent of the rows.

    Folding preserves inner products on average (Weinberger, Dasgupta, Langford, Smola, Attenberg, ICML
    2009).
    """
    mixed = numbers.astype(np.uint64)
    for shift, factor in SPLITMIX:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(1)) % np.uint64(columns), np.where(mixed & np.uint64(1), 1.0, -1.0)


def _documents(path, topic):
    documents = {document for _, name, document, *_ in _lines(path, least=2) if name == topic}
    if not documents:
        raise ValueError(f"{path}: no document has the topic {topic!r}")
    return documents


def _lines(path, least=1):
    """Yield the place of each line, for error messages, and its words."""
    with open_text(path) as text:
        for number, line in enumerate(text, 1):
            words = line.split()
            if len(words) < least:
                raise ValueError(
                    f"{path}: line {number}: has too few words: {brief(line.strip())!r}"
                )
            yield f"{path}: line {number}", *words

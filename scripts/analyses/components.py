"""Principal components of standardised training rows."""

from pathlib import Path

import numpy as np

from dp.data.components import principal_components
from study.data.prepared import Prepared
from study.jobs.files import atomic, read_json, write_csv

COLUMNS = ("dataset", "title", "components", "explained")


def explained_variance(experiment, spec, paths, seed, out):
    """Share of the variance that the first k components explain together, for every k."""
    rows = []
    for name, path in paths.items():
        title = read_json(Path(path).with_suffix(".json"))["title"]
        explained = principal_components(Prepared(path).X, standardise=True).explained.cumsum()
        rows += ((name, title, k, share) for k, share in enumerate(explained, 1))
    write_csv(out, COLUMNS, rows)


def first_components(experiment, spec, paths, seed, out):
    """Every training row's first two scores, with labels, names and the variance explained."""
    arrays = {"datasets": np.array(list(paths))}
    for name, path in paths.items():
        prepared, meta = Prepared(path), read_json(Path(path).with_suffix(".json"))
        found = principal_components(prepared.X, standardise=True)
        arrays |= {
            f"{name}/title": np.array(meta["title"]),
            f"{name}/scores": found.scores(prepared.X, 2).astype(np.float32),
            f"{name}/y": prepared.y,
            f"{name}/labels": np.array([int(label) for label in meta["labels"]]),
            f"{name}/names": np.array(list(meta["labels"].values())),
            f"{name}/explained": found.explained,
        }
    with atomic(out, "wb") as handle:
        np.savez(handle, **arrays)

"""How many rows of each class a data set has."""

from pathlib import Path

from study.jobs.files import read_json, write_csv

COLUMNS = ("dataset", "part", "class", "rows")


def class_counts(experiment, spec, paths, seed, out):
    """Rows of every class, in the training part and in the official test part where there is one."""
    rows = []
    for name, path in paths.items():
        meta = read_json(Path(path).with_suffix(".json"))
        for part, key in (("train", "class_counts"), ("test", "test_class_counts")):
            for label, label_name in meta["labels"].items():
                if meta[key]:
                    rows.append((name, part, label_name, meta[key].get(label, 0)))
    write_csv(out, COLUMNS, rows)

import gzip

import pytest

from study.configuration.data_set_keys import DataSet, File
from study.data import origins
from study.data.downloads import Wanted

FILES = {
    "images.gz": File(urls=["https://a.example/images.gz"], sha256="0" * 64),
    "labels.gz": File(urls=["https://a.example/labels.gz"], sha256="1" * 64),
    "bank.zip": File(urls=["https://a.example/bank.zip"], sha256="2" * 64),
}
IDX = {"idx": {"images": "images.gz", "labels": "labels.gz"}}


def resolve(source, steps=(), files=None, **entry):
    entry = DataSet.model_validate({"source": source, "steps": list(steps), **entry})
    origins.resolve("mine", entry, dict(FILES) if files is None else files)
    return entry


def test_names_become_paths():
    entry = resolve({"idx": {"images": "images.gz", "labels": "own/labels"}}, classes=[4, 7, 9])
    assert entry.source.idx.plain() == {"images": "data/raw/images.gz", "labels": "own/labels"}
    entry = resolve({"csv": "bank.zip"}, label="y", positive="yes")
    assert entry.source.csv == "data/raw/bank.zip" and "rows" not in entry.source.plain()


def test_an_address_becomes_a_download():
    files = dict(FILES)
    source = {"csv": "https://b.example/path/rows.csv?version=2", "sha256": "3" * 64}
    entry = resolve(source, files=files, label="y", positive=1)
    assert entry.source.csv == "data/raw/mine-rows.csv"
    place = "https://b.example/path/rows.csv?version=2"
    assert files["mine-rows.csv"] == Wanted("mine-rows.csv", (place,), "3" * 64)


def test_rows_of_a_file_of_ones_own_are_counted(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n3,4\n\n5,6\n", mtime=0))
    with_header = resolve({"csv": str(path)}, label="1", positive=1)
    assert with_header.source.rows == 2
    without = resolve({"csv": str(path), "names": ["a", "b"]}, label="a", positive=1)
    assert without.source.rows == 3


@pytest.mark.parametrize(
    ("source", "entry", "match"),
    [
        ({"idx": {"images": "image.gz", "labels": "labels.gz"}}, {"positive": 4}, "'images.gz'"),
        (IDX, {"positive": 4, "classes": [1, 2, 3]}, "keep one"),
        ({"csv": "a/b.csv", "sha256": "0" * 64}, {"label": "y", "positive": 1}, "by its address"),
        ({"csv": "a/b.pkl.xz"}, {"label": "y", "positive": 1}, "a pickle, which runs as a program"),
        (
            {"csv": "https://b.example/t.pkl"},
            {"label": "y", "positive": 1},
            "only under a SHA-256, of config/files.yaml or beside its address",
        ),
        (
            {"csv": "a/b.parquet", "delimiter": ";"},
            {"label": "y", "positive": 1},
            "source.delimiter: is for text",
        ),
        (IDX, {"positive": 4, "missing": {"*": "drop"}}, "missing: is for 'csv' only"),
        ({"sklearn": "digits", "delimiter": ";"}, {}, "source.delimiter: is for 'csv' only"),
        (IDX, {"positive": 4, "categories": {"a": [1, 2]}}, "are for 'csv' only"),
        (
            {"csv": "bank.zip"},
            {"label": "y", "positive": 1, "bounds": {"a": [0, 1]}, "categories": {"a": [1, 2]}},
            "'a' has bounds too",
        ),
    ],
)
def test_refuses(source, entry, match):
    with pytest.raises(ValueError, match=match):
        resolve(source, **entry)


@pytest.mark.parametrize(
    ("step", "match"),
    [
        ({"pca": {"component": 3}}, "did you mean 'components'"),
        ({"random_projection": {"dimension": 3, "rng": 1}}, "no option 'rng'"),
    ],
)
def test_refuses_steps(step, match):
    with pytest.raises(ValueError, match=match) as problem:
        resolve({"sklearn": "digits"}, [{"row_norm": None}, step])
    assert str(problem.value).startswith("steps[1]: ")


def test_rows_left_by_the_steps():
    two = {"binary": {"negative": 4, "positive": 9}}
    assert origins.prepared_rows(resolve({"sklearn": "digits", "rows": 1797})) == 1797
    assert origins.prepared_rows(resolve({"sklearn": "digits", "rows": 1797}, [two])) is None
    known = resolve({"sklearn": "digits", "rows": 1797}, [two], rows=361)
    assert origins.prepared_rows(known) == 361


def test_many_classes():
    two = {"binary": {"negative": 4, "positive": 9}}
    assert origins.many_classes(resolve({"sklearn": "digits"}))
    assert not origins.many_classes(resolve({"sklearn": "digits"}, [two]))
    assert not origins.many_classes(resolve({"sklearn": "digits"}, positive=4))


READ = {"label": "y", "positive": 1, "bounds": {"a": [0, 1]}, "categories": {"c": ["u", 1, "drop"]}}


@pytest.mark.parametrize(
    ("missing", "match"),
    [
        ({"c": "w"}, r"missing.c: 'w' is neither 'drop' nor a listed category"),
        ({"c": "drop"}, r"missing.c: 'drop' is a category here, and rows to be dropped"),
        ({"a": "u"}, r"missing.a: must be 'drop' or a number, not 'u'"),
        ({"*": 0}, r"missing.\*: every other column takes 'drop' alone, not 0"),
        ({"aa": 0}, r"missing.aa: no such column is read; did you mean 'a'"),
    ],
)
def test_refuses_what_missing_cells_cannot_become(missing, match):
    resolve({"csv": "bank.zip"}, **READ, missing={"a": 0, "c": 1, "y": "no", "*": "drop"})
    with pytest.raises(ValueError, match=match):
        resolve({"csv": "bank.zip"}, **READ, missing=missing)


def test_how_many_rows_are_left_must_be_said_if_some_are_dropped():
    entry = DataSet.model_validate({"source": {"csv": "bank.zip", "rows": 100}, "steps": []})
    assert origins.prepared_rows(entry.but(missing={"a": 1})) == 100
    dropping = entry.but(missing={"a": 1, "*": "drop"})
    assert origins.prepared_rows(dropping) is None
    assert origins.prepared_rows(dropping.but(rows=90)) == 90


def test_several_files_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("part-2.csv", "part-1.csv", "part-[3].csv"):
        (tmp_path / name).write_text("a,y\n1,1\n2,0\n")
    entry = resolve({"csv": "part-?.csv"}, label="y", positive=1)
    assert entry.source.csv == ["part-1.csv", "part-2.csv"] and entry.source.rows == 4
    assert origins.source_files(entry.source) == {
        "csv[0]": "part-1.csv",
        "csv[1]": "part-2.csv",
    }
    origins.check_own_files(entry, FILES)
    exact = resolve({"csv": "part-[3].csv"}, label="y", positive=1)
    assert exact.source.csv == "part-[3].csv"
    nothing = resolve({"csv": "bits-*.csv"}, label="y", positive=1)
    with pytest.raises(ValueError, match=r"source.csv: no file 'bits-\*.csv'"):
        origins.check_own_files(nothing, FILES)
    both = resolve({"csv": ["bank.zip", "part-1.csv"]}, label="y", positive=1)
    assert both.source.csv == ["data/raw/bank.zip", "part-1.csv"]


def test_a_pickles_checksum_reaches_whoever_reads_it():
    files = {"t.pkl.xz": File(urls=["pypi:t==1#t"], sha256="4" * 64)}
    entry = resolve({"csv": "t.pkl.xz"}, files=files, label="y", positive=1)
    assert entry.source.csv == "data/raw/t.pkl.xz" and entry.source.sha256 == "4" * 64
    entry = resolve(
        {"csv": "https://b.example/t.pkl", "sha256": "5" * 64}, files=files, label="y", positive=1
    )
    assert entry.source.sha256 == files["mine-t.pkl"].sha256 == "5" * 64


TARGET = {"target": {"column": "visits", "bounds": [0, 20]}}


@pytest.mark.parametrize(
    ("source", "entry", "match"),
    [
        ({"csv": "bank.zip"}, {**TARGET, "label": "y"}, "both 'target' .* and 'label'"),
        ({"csv": "bank.zip"}, {**TARGET, "positive": 1}, "both 'target' .* and 'positive'"),
        (IDX, TARGET, "target: is for 'csv', 'sklearn' and `simulate: linear` only"),
        ({"sklearn": "wine"}, TARGET, "scikit-learn's wine has classes"),
        (
            {"csv": "bank.zip"},
            {"target": {"column": "visits", "bounds": [20, 20]}},
            "target.bounds: 20 is not below 20",
        ),
        (
            {"csv": "bank.zip"},
            {"target": {"column": "visits", "bounds": [1, 20], "counts": True}},
            "counts start at 0",
        ),
        (
            {"csv": "bank.zip"},
            {"target": {**TARGET["target"], "counts": True, "scaled": True}},
            "no `scaled`",
        ),
        ({"csv": "bank.zip"}, {**TARGET, "bounds": {"visits": [0, 1]}}, "'visits' is no feature"),
        ({"csv": "bank.zip"}, {**TARGET, "missing": {"visits": "none"}}, "'drop' or a number"),
        ({"sklearn": "diabetes"}, {"positive": 1}, "learnt by regression"),
    ],
)
def test_targets_that_make_no_sense_are_refused(source, entry, match):
    with pytest.raises(ValueError, match=match):
        resolve(source, **entry)


def test_a_target_that_is_a_number():
    entry = resolve({"csv": "bank.zip"}, **TARGET, missing={"visits": 0})
    assert not origins.many_classes(entry)
    facts = origins.public_facts(entry)
    assert facts["target"] == TARGET["target"] and facts["labels"] == {}

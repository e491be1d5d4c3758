"""A study's release takes columns from its data set. Refusals come before a row is read."""

import gzip
import json
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from dp.mechanisms import MECHANISMS
from dp_privacy.errors import Refused
from dp_release import rows
from dp_release.request import Request
from project import ROOT
from study import paths
from study.configuration import releases
from study.configuration.validation import ConfigError
from study.dependencies import files_of_job

ENTRY = {
    "source": {"csv": "clinic.csv"},
    "label": "readmitted",
    "positive": "yes",
    "bounds": {"age": [18, 98], "visits": [0, 20]},
    "categories": {"ward": ["general", "surgery", "intensive"]},
}
RELEASE = {
    "data": "clinic",
    "rows": 3,
    "unit": "one row is one person",
    "book": "clinic.book",
    "budget": {"epsilon": 2, "delta": 2e-6},
    "epsilon": 1,
    "delta": 1e-6,
    "method": "noise_aware_logistic",
    "premise": "chosen without these rows",
}
STEPS = [{"constant_feature": {}}, {"clip": {"radius": 2.0}}]


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Function that loads a study's release, with changes to its data set and request."""

    def load(entry=None, release=None, header="id,age,ward,visits,readmitted", more=None):
        entry = ENTRY | (entry or {})
        entry = {key: value for key, value in entry.items() if value is not None}
        if isinstance(entry["source"].get("csv"), str):
            file = tmp_path / entry["source"]["csv"]
            entry["source"] = entry["source"] | {"csv": str(file)}
            if not file.name.startswith("no"):
                write = gzip.open if file.suffix == ".gz" else open
                with write(file, "wb") as handle:
                    handle.write(header.encode(errors="surrogateescape") + b"\n\xff never read\n")
        values = {k: v for k, v in (RELEASE | (release or {})).items() if v is not None}
        (tmp_path / "datasets.yaml").write_text(yaml.safe_dump({"clinic": entry} | (more or {})))
        (tmp_path / "visits.yaml").write_text(yaml.safe_dump(values))
        own = {
            "datasets.yaml": [tmp_path / "datasets.yaml"],
            "releases/*.yaml": [tmp_path / "visits.yaml"],
        }
        shipped = paths.configuration
        with monkeypatch.context() as patch:
            patch.setattr(
                paths, "configuration", lambda *names: own.get(names[0]) or shipped(*names)
            )
            return releases.load("visits")

    return load


def test_columns_follow_the_header(loaded):
    actual = loaded()
    assert isinstance(actual.request, Request) and actual.header
    schema = rows.from_facts(actual.request.schema)
    assert schema.columns == (
        rows.Unused("id"),
        rows.Number("age", 18, 98),
        rows.Category("ward", ("general", "surgery", "intensive"), "general"),
        rows.Number("visits", 0, 20),
        rows.Label("readmitted", ("yes",)),
    )
    assert schema.names == ["age", "ward=surgery", "ward=intensive", "visits", "constant"]
    assert actual.request.classes == ["not yes", "yes"] and schema.radius == 1
    assert str(actual.book.path) == "clinic.book"


def test_what_an_entry_may_say(loaded):
    actual = loaded(
        {
            "missing": {"visits": 0, "ward": "general"},
            "steps": STEPS,
            "unit": {"row": "a stay", "group": "a person", "rows": 4, "source": "x"},
            "premise": "the ends of ages",
        },
        {"negative": "no", "reference": {"ward": "surgery"}, "options": {"robust": True}},
    ).request
    schema = rows.from_facts(actual.schema)
    assert schema.names == ["age", "ward=general", "ward=intensive", "visits", "constant"]
    lines = [b"1,20,surgery,,yes", b"2,20,,3,no", b"3,20,surgery,1,maybe", b"4,NA,surgery,1,no"]
    V, y = schema.rows(lines, 4)
    assert y.tolist() == [1, -1, 0, 0]
    assert V[0].any() and V[0, 3] == -schema.each and V[1, 1] == schema.each
    assert not V[2:].any() and not V[0, 1:3].any()
    assert actual.unit == "one row is one person (a stay; a person has at most 4 rows)"
    assert actual.taken_as_public == "the ends of ages" and actual.options == {"robust": True}
    assert (
        loaded({"steps": [{"constant_feature": {}}, {"clip": {"radius": 1}}]}).request.schema[
            "radius"
        ]
        == 0.5
    )


def test_a_negative_label_may_be_0(loaded):
    request = loaded({"positive": 1}, {"negative": 0}).request
    assert request.classes == ["0", "1"]
    lines = [b"1,20,surgery,3,1", b"2,20,surgery,3,0", b"3,20,surgery,1,2"]
    assert rows.from_facts(request.schema).rows(lines, 3)[1].tolist() == [1, -1, 0]
    with pytest.raises((Refused, ConfigError), match="labels that are listed"):
        loaded({"positive": {"above": 0}}, {"negative": 0})


def test_a_pure_request_states_no_delta(loaded):
    pure = {"law": "pure", "delta": None, "budget": {"epsilon": 2}}
    actual = loaded(release=pure)
    assert actual.request.law == "pure" and actual.request.cost == (1, 0)
    assert actual.book.budget.delta == 0
    assert rows.from_facts(actual.request.read_as().facts).names == [
        *("age", "ward=general", "ward=surgery", "ward=intensive", "visits")
    ]
    alone = loaded(release=pure | {"law": None, "method": "knorm_objective_perturbation"})
    assert alone.request.law == "pure" and alone.request.delta == 0
    for wrong in ({"delta": None}, {"law": "mixed", "delta": None}):
        with pytest.raises(ConfigError, match="needs the key 'delta'"):
            loaded(release=wrong)
    with pytest.raises(ConfigError, match="law"):
        loaded(release={"law": "laplace"})


def test_bounds_may_be_found(loaded):
    found = {"least": 0, "most": 500, "share": 0.2, "outside": 0.02}
    request = loaded(
        {"bounds": {"age": {"find": True}, "visits": {"find": found}}, "missing": {"visits": 3}}
    ).request
    age, visits = (rows.from_facts(request.schema).columns[k] for k in (1, 3))
    assert age == rows.Number("age", -(10**9), 10**9, find={})
    assert visits == rows.Number("visits", 0, 500, 3, find={"share": 0.2, "outside": 0.02})
    every = loaded({"bounds": {"*": {"find": True}, "age": [0, 99]}}).request
    assert [c.get("find") for c in every.schema["columns"]] == [{}, None, None, {}, None]
    text = loaded(
        {"bounds": {"age": {"find": {"share": 0.1, "least": 1, "most": "1.0e9"}}}}
    ).request
    assert text.schema["columns"][1]["high"] == 1e9
    target = {"column": "visits", "bounds": {"find": {"least": 0}}}
    entry = {"target": target, "label": None, "positive": None, "bounds": {"age": [0, 99]}}
    numbers = loaded(entry, {"method": "noise_aware_log_cosh"}).request
    assert numbers.schema["columns"][3]["find"] == {}


@pytest.mark.parametrize(
    "find", [False, {"low": 0}, {"share": 1}, {"outside": 0.5}, {"least": "0"}, "yes", None]
)
def test_other_ways_to_ask_for_bounds_are_refused(loaded, find):
    with pytest.raises(ConfigError, match=r"clinic.bounds.age"):
        loaded({"bounds": {"age": {"find": find}}})


def test_outer_bounds_in_the_wrong_order_are_refused(loaded):
    with pytest.raises(ConfigError, match=r"'age' must be \[low, high\] with low < high"):
        loaded({"bounds": {"age": {"find": {"least": 2, "most": 1}}}})


@pytest.mark.parametrize(
    ("positive", "cell", "labels"),
    [
        ({"above": 0}, b"%s", {b"0": -1, b"0.5": 1, b"-3": -1, b"x": 0, b"": 0}),
        (1, b"%s", {b"1": 1, b"1.0": 1, b"2": -1, b"x": -1, b"NA": 0}),
        ("True", b"%s", {b"True": 1, b"true": -1, b"False": -1, b"?": 0}),
        (["a", "b"], b"%s", {b"a": 1, b"b": 1, b"A": -1, b"null": 0}),
    ],
)
def test_labels(loaded, positive, cell, labels):
    schema = rows.from_facts(loaded({"positive": positive}).request.schema)
    lines = [b"1,20,surgery,3," + cell % text for text in labels]
    assert schema.rows(lines, len(lines))[1].tolist() == list(labels.values())


@pytest.mark.parametrize("positive", [True, ["maybe", False]])
def test_labels_without_quotes_are_refused(loaded, positive):
    """YAML reads `positive: yes` as true, which equals no cell, so all rows would have one class."""
    with pytest.raises(ConfigError, match=r"YAML also makes of yes, .* quote it"):
        loaded({"positive": positive})


def test_numbers_other_separators_and_packed_files(loaded):
    entry = {
        "source": {"csv": "clinic.csv.gz", "delimiter": ";"},
        "label": None,
        "positive": None,
        "target": {"column": "visits", "bounds": [0, 20]},
        "bounds": {"age": [18, 98]},
    }
    method = {"method": "noise_aware_log_cosh"}
    actual = loaded(entry, method, header='"id";"age";ward;visits;readmitted')
    schema = rows.from_facts(actual.request.schema)
    assert schema.numbers and schema.separator == b";" and actual.request.classes is None
    assert schema.names == ["age", "ward=surgery", "ward=intensive", "constant"]
    entry["source"] = {"csv": "clinic.csv", "names": ["id", "age", "ward", "visits", None]}
    actual = loaded(entry, method)
    assert not actual.header
    assert rows.from_facts(actual.request.schema).columns[4] == rows.Unused("column 5")


@pytest.mark.parametrize(
    ("entry", "release", "message"),
    [
        ({"steps": [{"standardise": {}}]}, {}, "'standardise' looks at private rows"),
        ({"steps": [{"subset": {"rows": 2}}]}, {}, "'subset' selects rows"),
        ({"steps": [{"row_norm": {}}]}, {}, r"radius: 2\.0000"),
        ({"steps": STEPS[::-1]}, {}, "a release has `steps:"),
        ({"missing": {"*": "drop"}}, {}, "leave `drop` out"),
        ({"public_share": 0.2}, {}, "public_share"),
        ({"bounds": None, "categories": None}, {}, "public `bounds` or `categories`"),
        ({"positive": None, "classes": ["a", "b", "c"]}, {}, "two classes"),
        ({"source": {"csv": "no.csv"}}, {}, "no file"),
        ({"source": {"csv": ["a.csv", "b.csv"]}}, {}, "one file"),
        ({"source": {"csv": "clinic.parquet"}}, {}, "save the table as CSV"),
        ({"source": {"csv": "clinic.csv", "member": "a"}}, {}, "source.member: .*unpack it"),
        ({"source": {"csv": "clinic.csv", "decimal": ","}}, {}, "source.decimal: .* the delimiter"),
        ({"source": {"csv": "clinic.csv", "encoding": "gbk"}}, {}, "source.encoding: .* as UTF-8"),
        (
            {"source": {"csv": "clinic.csv", "header": 2, "names": ["a", "b"]}},
            {},
            "source.header: .* keep one of both",
        ),
        ({"source": {"csv": "clinic.csv", "separator": ";"}}, {}, "'separator' is called 'delim"),
        ({"missing": {"visits": {"codes": [9], "is": "drop"}}}, {}, "leave `drop` out"),
        ({"missing": {"agee": {"codes": [-9]}}}, {}, "no column 'agee'; did you mean 'age'"),
        ({"source": {"csv": "clinic.csv", "rows": 4}}, {}, "is not the 3"),
        ({"bounds": {"agee": [1, 2]}}, {}, "no column 'agee'; did you mean 'age'"),
        ({"label": "readmit"}, {}, "no column 'readmit'"),
        ({"target": {"column": "visits", "bounds": [0, 1], "log": True}}, {}, "target.log"),
        ({}, {"data": "clinc"}, "no data set 'clinc'; did you mean 'clinic'"),
        ({}, {"rows": None}, "rows"),
        ({}, {"method": "noise_aware_log_cosh"}, "target is two classes"),
        ({}, {"reference": {"ward": "x"}}, "reference: 'x' is no category"),
        ({}, {"lambda": 0.1}, "lambda"),
    ],
)
def test_refusals_before_a_row_is_read(loaded, entry, release, message):
    with pytest.raises(ConfigError, match=message) as error:
        loaded(entry, release)
    assert "never read" not in str(error.value) and "\n" not in str(error.value)


def test_another_separator_is_recognised(loaded):
    with pytest.raises(
        ConfigError, match=r"no column .* separated by \";\": set `delimiter: \";\"`"
    ):
        loaded(header="id;age;ward;visits;readmitted")


@pytest.mark.parametrize("end", [",", ",,", ",,,"])
def test_columns_without_a_name_are_not_used(loaded, end):
    """Delimiters at the ends of lines make columns without a name, which `bounds: {"*": ..}` leaves out."""
    header = f"id,age,ward,visits,readmitted{end}"
    schema = rows.from_facts(loaded(header=header).request.schema)
    assert schema.columns[:5] == rows.from_facts(loaded().request.schema).columns
    names = [""] if end == "," else [f"column {k}" for k in range(6, 6 + len(end))]
    assert schema.columns[5:] == tuple(map(rows.Unused, names))
    assert rows.different(rows.header(header.encode())) == [c.name for c in schema.columns]
    cells = b"1,30,surgery,2,yes" + end.encode()
    assert schema.rows([cells, b"1,30,surgery,2,yes"], 2)[1].tolist() == [1, 0]
    wide = loaded(
        {"bounds": {"*": [0, 100]}, "categories": None}, header=f"age,visits,readmitted{end}"
    )
    assert rows.from_facts(wide.request.schema).names == ["age", "visits", "constant"]


def test_a_name_that_occurs_twice_is_refused_if_it_is_used(loaded):
    schema = rows.from_facts(loaded(header="x,age,ward,x,visits,readmitted").request.schema)
    assert [c.name for c in schema.columns][::3] == ["column 1", "column 4"]
    for name in ("age", "ward", "readmitted"):
        with pytest.raises(ConfigError, match=f"has 2 columns '{name}', which a release uses"):
            loaded(header=f"id,age,ward,visits,readmitted,{name}")
    with pytest.raises(ConfigError, match="has 2 columns 'x'"):
        loaded({"bounds": {"*": [0, 9]}, "categories": None}, header="x,x,readmitted")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "Table 4: visits, by age\nprovisional\n\nid,age,ward,visits,readmitted",
            "no column 'readmitted'; line 4 has all names: set `header: 4`",
        ),
        (
            "Clinic;\n\nid;age;ward;visits;readmitted",
            "no column 'readmitted'; line 3 has all names: set `delimiter: \";\"` and `header: 3`",
        ),
        ("1,33,never read,2,yes", "no column 'readmitted': is the first line a header?"),
        ('a "b"', "no column 'readmitted': its first line is no header of column names"),
        ("id,age,ward,visits,\udcfcber", "its header is not UTF-8: set `encoding: latin-1`"),
        (
            "id,age,ward,visits,readmitted\r1,33,x,never read,yes",
            "no column 'readmitted', and its lines end in a carriage return alone",
        ),
    ],
)
def test_a_header_that_is_not_the_first_line_is_found(loaded, header, message):
    with pytest.raises(ConfigError) as error:
        loaded(header=header)
    assert message in str(error.value) and "never read" not in str(error.value)


@pytest.mark.parametrize("damage", [lambda data: data[:15], lambda data: b"x" + data])
def test_a_packed_file_that_is_damaged_is_refused(loaded, monkeypatch, damage):
    whole = gzip.open
    monkeypatch.setattr(
        gzip, "open", lambda path, mode: whole(path, mode) if mode == "wb" else cut(path)
    )

    def cut(path):
        path.write_bytes(damage(path.read_bytes()))
        return whole(path, "rb")

    with pytest.raises(ConfigError, match=r"clinic.csv.gz cannot be read \(.*[a-z]"):
        loaded({"source": {"csv": "clinic.csv.gz"}})


def test_a_finished_release_needs_no_rows(loaded, tmp_path):
    """Its columns' order is that of its model, so the request is the same without the file."""
    book = tmp_path / "clinic.book"
    header = "id,age,x,x,ward,visits,readmitted,,"
    release = loaded({}, {"book": str(book)}, header=header)
    gone = {"source": {"csv": "no.csv"}}
    with pytest.raises(ConfigError, match="no file"):
        loaded(gone, {"book": str(book)})
    model = book / "visits/model.json"
    model.parent.mkdir(parents=True)
    model.write_text(json.dumps({"schema": release.request.schema}))
    again = loaded(gone, {"book": str(book)})
    assert again.request.digest() == release.request.digest() and not again.path.exists()
    changed = loaded(gone | {"bounds": {"age": [18, 99]}}, {"book": str(book)})
    assert changed.request.digest() != release.request.digest()


def test_a_method_of_ones_own_is_refused_by_its_name(loaded, tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/mine.py").write_text(
        "from dp.mechanisms import Mechanism, register\n\n"
        '@register("mine")\nclass Mine(Mechanism):\n    pass\n'
    )
    monkeypatch.setenv("DP_MECHANISMS", str(tmp_path / "own"))
    assert loaded().request.method == "noise_aware_logistic"  # a study may have its own mechanisms
    with pytest.raises(ConfigError, match="mechanism of your own"):
        loaded({}, {"method": "mine"})


def test_a_benchmark_of_the_same_rows_must_be_told(loaded, tmp_path, monkeypatch):
    """The premise must mention a benchmark of the same rows, in any folder and under any name.

    Data sets with similar names do not count.
    """
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "out/results/data/clinic.json"
    path.parent.mkdir(parents=True)
    (tmp_path / "out/back").symlink_to(tmp_path)
    loaded()
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"out/results/ has results .* \(clinic\)"):
        loaded()
    for premise in ("public example", f"{RELEASE['premise']}, although a benchmark of them exists"):
        assert loaded({}, {"premise": premise}).request.premise == premise
    other = path.with_name("other.json")
    path.rename(other)
    (tmp_path / "data.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    release = {"data": "clinic"}
    for file, same in (("data.csv", False), ("none.csv", False), ("link.csv", True)):
        entries = {"other": {"source": {"csv": file}}}
        if same:
            with pytest.raises(ConfigError, match=r"\(other\)"):
                loaded({"source": {"csv": "a.csv"}}, release, more=entries)
        else:
            loaded({"source": {"csv": "a.csv"}}, release, more=entries)
    away = tmp_path.parent / f"{tmp_path.name}_results"
    other.parent.parent.rename(away)
    loaded({"source": {"csv": "a.csv"}}, release, more=entries)
    monkeypatch.setenv(paths.VARIABLE, str(away))
    with pytest.raises(ConfigError, match=r"\(other\)"):
        loaded({"source": {"csv": "a.csv"}}, release, more=entries)


def test_a_model_of_another_book_is_not_replaced(loaded, tmp_path):
    """Replacing the model would publish a second draw under the same name, whose cost no total includes."""
    own = tmp_path / "clinic.book/visits/model.json"
    release = loaded({}, {"book": str(tmp_path / "clinic.book")})
    releases.check_place(release, tmp_path / "out")
    there = tmp_path / "out/model.json"
    there.parent.mkdir()
    there.write_text("one")
    with pytest.raises(Refused, match="did not make"):
        releases.check_place(release, there.parent)
    own.parent.mkdir(parents=True)
    own.write_text("another")
    with pytest.raises(Refused, match="did not make"):
        releases.check_place(release, there.parent)
    own.write_text("one")
    releases.check_place(release, there.parent)


@pytest.mark.parametrize("place", ["out/visits.book", "releases/visits.book"])
def test_a_book_is_not_among_what_may_be_published(loaded, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match="may not: move it beside the rows"):
        releases.check_place(loaded({}, {"book": place}), "out")


def test_forecasts_execute_only_files_in_their_digest(tmp_path):
    """The job runs only in a study, so the test of all other jobs' digests does not run it."""
    (tmp_path / "config/releases").mkdir(parents=True)
    entry = ENTRY | {"label": None, "positive": None}
    numeric = {key: value for key, value in entry.items() if value is not None}
    numeric |= {"target": {"column": "readmitted", "bounds": [0, 9]}}
    entries = {"clinic": ENTRY, "numeric": numeric}
    (tmp_path / "config/datasets.yaml").write_text(yaml.safe_dump(entries))
    (tmp_path / "clinic.csv").write_text("age,ward,visits,readmitted\n")
    for method, data in (
        ("gaussian_objective_perturbation", "clinic"),
        ("noise_aware_log_cosh", "numeric"),
    ):
        asked = yaml.safe_dump(RELEASE | {"method": method, "data": data, "rows": 2000})
        (tmp_path / f"config/releases/{method}.yaml").write_text(asked)
    program = (
        "import sys\nfrom jobs import forecasts\n"
        "forecasts.main()\n"
        "print(*(each.__file__ for each in sys.modules.values() if getattr(each, '__file__', '')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--out", "forecasts.json"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    for card in json.loads((tmp_path / "forecasts.json").read_text()):
        assert card["cost"] and "No forecast" not in card["says"][0], card
    own = {file for file in done.stdout.split() if file.startswith(str(ROOT / "scripts"))}
    known = files_of_job("jobs/forecasts.py", MECHANISMS.module("gaussian_objective_perturbation"))
    empty = ROOT / "scripts/jobs/__init__.py"  # it has a docstring alone
    assert own and own <= {str(path) for path in (*known, empty)}


def test_the_job_is_in_a_process_of_its_own(tmp_path):
    """The shell function of hooks.smk hands all jobs except releases to a long-lived process."""
    rule = (ROOT / "workflow/rules/release.smk").read_text()
    hooks = (ROOT / "workflow/rules/hooks.smk").read_text()
    (command,) = (line.strip() for line in rule.splitlines() if "scripts/tools/release.py" in line)
    (prefix,) = re.findall(r"shell\.prefix(\(.*?\n    \))\n", hooks, flags=re.DOTALL)
    prefix = (
        eval(prefix, {"shlex": shlex, "folder": "a_socket"}).replace("{{", "{").replace("}}", "}")
    )
    home = tmp_path / "home"
    for file, text in {
        "scripts/tools/release.py": "own",
        "scripts/study/jobs/ask.py": "asked",
    }.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(f"print({text!r})")
    environment = {
        "DP_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{ROOT / '.venv/bin'}:/usr/bin:/bin",
    }

    def run(line):
        script = prefix + line.strip("'\"").replace("{wildcards.release}", "visits").replace(
            "{log}", "log"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert run(command) == "own"
    assert run('python "$DP_HOME/scripts/job.py" run') == "asked"  # by the shell function

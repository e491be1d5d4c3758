"""A bad configuration ends with one sentence that names the file, the key and the nearest valid name."""

import copy
import re
import shutil
from pathlib import Path

import pytest
import yaml

from configured import configured
from project import ROOT
from study.configuration import config, sources
from study.configuration.config import ConfigError
from study.configuration.validation import merge, origin, read_yaml

FEW = ["cm08", "wdbc"]
DEFAULT = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | {"experiments": FEW}


def update(base, changes):
    """Merge configurations as Snakemake does: mappings merge, and null is an ordinary value."""
    for key, value in changes.items():
        if isinstance(value, dict):
            before = base.get(key)
            base[key] = update(before if isinstance(before, dict) else {}, value)
        else:
            base[key] = value
    return base


def _others(folder, names):
    """The experiments and sources among `names` that the tests leave out."""
    of_few = {"chaudhuri_monteleoni_2008", "wdbc.yaml", "_template", "_template.yaml"}
    return {*names} - of_few if Path(folder).name in ("experiments", "sources") else ()


@pytest.fixture
def project(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "config", tmp_path / "config", ignore=_others)
    shutil.copytree(ROOT / "workflow/schemas", tmp_path / "workflow/schemas")
    shutil.copytree(ROOT / "workflow/rules", tmp_path / "workflow/rules")
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests/tiny.yaml", tmp_path / "tests/tiny.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(*overlays):
    merged = copy.deepcopy(DEFAULT)
    for overlay in overlays:
        update(merged, yaml.safe_load(Path(overlay).read_text()) or {})
    return config.load(merged, [*overlays, "config/config.yaml"])


def message(*overlays):
    with pytest.raises(ConfigError) as caught:
        load(*overlays)
    text = str(caught.value)
    assert "\n" not in text and "Traceback" not in text and len(text) < 800
    return text


def overlaid(project, text):
    (project / "bad.yaml").write_text(text)
    return message("bad.yaml")


def test_the_configurations_that_come_with_the_project_are_right():
    for _, experiments, datasets in (configured(), configured("smoke")):
        assert {"cm08", "wdbc"} <= set(experiments)
        assert {"cm08_separable", "wdbc_clip"} <= set(datasets)


CM08 = "settings: {cm08: %s}"
SWEEP = CM08 % "{sweeps: {epsilon: %s}}"
WHERE = "bad.yaml: settings.cm08: "

OVERLAYS = [
    ("experiment: [cm08]", "bad.yaml: unknown key 'experiment'; did you mean 'experiments'?"),
    (
        CM08 % "{methods: {nonprivate: {option: {}}}}",
        WHERE + "methods.nonprivate: unknown key 'option'; did you mean 'options'?",
    ),
    (SWEEP % "{epsilon: [1]}", WHERE + "sweeps.epsilon: unknown key 'epsilon'; did you mean"),
    ("settings: {cm80: {}}", "bad.yaml: settings: no experiment 'cm80'; did you mean 'cm08'?"),
    (
        CM08 % "{datasets: [cm08_seperable]}",
        WHERE + "datasets: no data set 'cm08_seperable'; did you mean 'cm08_separable'?",
    ),
    (
        CM08 % "{methods: {output_pertubation: {}}}",
        WHERE + "methods.output_pertubation: no mechanism 'output_pertubation'; did you mean "
        "'output_perturbation'?",
    ),
    (
        CM08 % "{figures: {figure_2a: {options: {log_errors: true}}}}",
        WHERE + "figures.figure_2a.options: no option 'log_errors'; did you mean 'log_error'?",
    ),
    (
        CM08 % "{methods: {nonprivate: {options: {los: logistic}}}}",
        WHERE + "methods.nonprivate: nonprivate has no option 'los'",
    ),
    (CM08 % "{lambda: publishd}", WHERE + "lambda: must be a number or one of published, tuned, "),
    (CM08 % "{methods: {a b: {}}}", WHERE + "methods: the name 'a b' may hold letters, digits"),
    (
        SWEEP % "{epsilons: [1e-1]}",
        WHERE + "sweeps.epsilon.epsilons[0]: '1e-1' is text, not a number: write 0.1, without",
    ),
    (CM08 % "{lambda: 1e-2}", WHERE + "lambda: '1e-2' is text, not a number: write 0.01, without"),
    (
        CM08 % "{methods: {output_perturbation: {options: {tolerance: 1e-6}}}}",
        WHERE + "methods.output_perturbation.options.tolerance: '1e-6' is text, not a number: "
        "write 1.0e-06, without quotes",
    ),
    (CM08 % "{methods: {1: {}}}", "bad.yaml: settings.cm08.methods: the key 1 is a number: write"),
    (CM08 % "{title: 2008-12-08}", "bad.yaml: settings.cm08.title: 2008-12-08 is a date: write"),
    (
        SWEEP % "{epsilons: [0]}",
        WHERE + "sweeps.epsilon.epsilons[0]: must be greater than 0, not 0",
    ),
    (
        SWEEP % "{epsilons: [.inf]}",
        "bad.yaml: settings.cm08.sweeps.epsilon.epsilons[0]: must be a finite number, not .inf",
    ),
    (
        SWEEP % "{epsilons: [true]}",
        WHERE + "sweeps.epsilon.epsilons[0]: must be a number, not true",
    ),
    (
        SWEEP % "{epsilons: {from: 2, to: 1, step: 0.1}}",
        WHERE + "sweeps.epsilon.epsilons: the range is empty: 'from' exceeds 'to'",
    ),
    (
        SWEEP % "{train_sizes: {from: 1, to: 1000000000000, step: 1}}",
        WHERE + "sweeps.epsilon.train_sizes: the range has more than 100000 values",
    ),
    (
        CM08 % "{restarts: 1%s}" % ("0" * 400),
        "bad.yaml: settings.cm08.restarts: must be a number of",
    ),
    (
        CM08 % "{published: {figure_1: {epsilon: [x]}}}",
        WHERE + "published.figure_1.epsilon[0]: must be a number, not text ('x')",
    ),
    (
        SWEEP % "{train_sizes: {from: 2.5, to: 10, step: 1}}",
        WHERE + "sweeps.epsilon.train_sizes.from: must be a whole number, not a number (2.5)",
    ),
    (
        SWEEP % "{train_sizes: [14001]}",
        WHERE + "sweeps.epsilon.train_sizes: 14001 is more than the 14000 training rows of "
        "cm08_separable (17500 rows in 5 folds)",
    ),
    (
        CM08 % "{folds: 20000}",
        WHERE + "folds: cm08_separable has 17500 rows, fewer than 20000 folds",
    ),
    (CM08 % "{tune: {folds: 10001}}", WHERE + "tune.folds: cm08_separable has 10000 rows to tune"),
    (
        CM08 % "{methods: {nonprivate: {delta: 1}}}",
        WHERE + "methods.nonprivate.delta: must be less",
    ),
    (CM08 % "{tune: {grid: {low: 2}}}", WHERE + "tune.grid: low must be less than high"),
    ("seed: 1.5", "bad.yaml: seed: must be a whole number, not a number (1.5)"),
    # types, and null
    ("experiments: cm08", "bad.yaml: experiments: must be a list, not text ('cm08')"),
    ("experiments: [cm08, cm08]", "bad.yaml: experiments: names 'cm08' twice"),
    ("seed: null", "bad.yaml: seed: must be a whole number, not null"),
    (CM08 % "[1]", "bad.yaml: settings.cm08: must be a mapping, not a list"),
    (
        CM08
        % "{methods: {nonprivate: null, output_perturbation: null, objective_perturbation: null, "
        "objective_perturbation_cm08: null}}",
        WHERE + "methods: must not be empty",
    ),
    (CM08 % "{sweeps: {table: null}}", WHERE + "tables.figure_1.sweep: no sweep 'table'"),
    (CM08 % "{tune: null}", WHERE + "tables.tuning: tuning needs a 'tune' section"),
    (CM08 % "{lambda_published: null}", WHERE + "methods.nonprivate: lambda is 'published' but"),
    (
        CM08 % "{sweeps: {epsilon: {datasets: [cm08_unseparable]}}}",
        WHERE + "figures.figure_2c: the sweep 'epsilon' runs none of its data sets and methods",
    ),
    (
        CM08 % "{figures: {tuning: {sweep: table}}}",
        WHERE + "figures.tuning: tuning_curve takes no 'sweep'",
    ),
    ("seed: 1\nseed: 2", "bad.yaml: line 2: not valid YAML (duplicate key 'seed')"),
]


@pytest.mark.parametrize(("text", "expected"), OVERLAYS, ids=[text for text, _ in OVERLAYS])
def test_a_bad_overlay(project, text, expected):
    assert overlaid(project, text).startswith(expected)


def test_all_faults_of_a_file_are_named_at_once(project):
    text = (
        CM08
        % "{restart: 3, folds: 1, methods: {nonprivate: {delta: 1}}, sweeps: {epsilon: {epsilons: [x]}}}"
    )
    assert overlaid(project, text).split("; ") == [
        WHERE + "unknown key 'restart'",
        "did you mean 'restarts'?",
        WHERE + "folds: must be at least 2, not 1",
        WHERE + "methods.nonprivate.delta: must be less than 1, not 1",
        WHERE + "sweeps.epsilon.epsilons[0]: must be a number, not text ('x')",
    ]
    text = CM08 % "{figures: {figure_2a: {kind: curve}, figure_2b: {options: {log_errors: true}}}}"
    first, second = overlaid(project, text).split("; " + WHERE)
    assert first.startswith(WHERE + "figures.figure_2a.kind: no kind 'curve'")
    assert second.startswith("figures.figure_2b.options: no option 'log_errors'")


def test_a_key_that_only_the_workflow_makes_is_unknown(project):
    assert overlaid(project, CM08 % "{smaller: []}").startswith(WHERE + "unknown key 'smaller'")


def test_the_nearest_name_or_all_of_them(project):
    assert "did you mean" not in overlaid(project, CM08 % "{methods: {zzz: {}}}")
    assert re.search(r"\(valid: .*\bnonprivate\b", message("bad.yaml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1", "broken.yaml: line "),
        ("a: b: c", "broken.yaml: line 1: not valid YAML"),
        ("- a", "broken.yaml: must hold keys with values, not a list"),
        ("just text", "broken.yaml: must hold keys with values, not text"),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(ConfigError, match="^" + re.escape(expected)):
        read_yaml("broken.yaml")


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"title: caf\xe9")
    with pytest.raises(ConfigError, match=r"latin\.yaml: is not UTF-8 text"):
        read_yaml(tmp_path / "latin.yaml")
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read \(No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_an_experiments_own_file_is_named(project):
    path = project / "config/sources/chaudhuri_monteleoni_2008/cm08.yaml"
    path.write_text(path.read_text().replace("restarts:", "restart:"))
    assert (
        message() == f"{path.relative_to(project)}: unknown key 'restart'; did you mean 'restarts'?"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", "config/experiments/run.yaml: the name 'run' is taken by the workflow: rename"),
        ("data", "config/experiments/data.yaml: the name 'data' is taken by the workflow"),
        ("my-study", "config/experiments/my-study.yaml: the file's name may hold letters, digits"),
    ],
)
def test_a_name_that_cannot_be_a_target(project, name, expected):
    shutil.copy("config/experiments/wdbc.yaml", f"config/experiments/{name}.yaml")
    assert message().startswith(expected)


def test_templates_and_hidden_files_are_no_experiments(project):
    for name in ("_template.yaml", ".#cm08.yaml"):
        (project / "config/experiments" / name).write_text("not: [finished")
    assert not {"_template", ".#cm08"} & set(load()[1])


def test_the_overlay_that_has_the_key_is_named(project):
    tiny = project / "tests/tiny.yaml"
    tiny.write_text(tiny.read_text().replace("restarts: 3", "restarts: 0"))
    good = project / "good.yaml"
    good.write_text("settings: {cm08: {folds: 4}}")
    expected = "tests/tiny.yaml: settings.cm08: restarts: must be at least 1, not 0"
    assert message("tests/tiny.yaml") == expected
    assert message("tests/tiny.yaml", "good.yaml") == expected
    assert message("good.yaml", "tests/tiny.yaml") == expected
    good.write_text("settings: {cm08: {restarts: 4}}")
    assert load("tests/tiny.yaml", "good.yaml")[1]["cm08"].restarts == 4
    assert message("good.yaml", "tests/tiny.yaml") == expected
    good.write_text("settings: {cm08: {restarts: -4}}")
    assert message("tests/tiny.yaml", "good.yaml").startswith("good.yaml: settings.cm08: restarts")


def test_a_value_from_the_command_line_is_named_so(project):
    merged = {**copy.deepcopy(DEFAULT), "seed": -3}
    with pytest.raises(ConfigError, match=r"^--config: seed: must be at least 0, not -3$"):
        config.load(merged, ["config/config.yaml"])
    assert origin(["seed"], {"config/config.yaml": DEFAULT}, DEFAULT) == "config/config.yaml"


def test_null_takes_away_and_mappings_merge():
    base = {"a": {"b": 1, "c": 2}, "d": [1, 2]}
    assert merge(base, {"a": {"b": None}, "d": [3]}) == {"a": {"c": 2}, "d": [3]}
    assert merge(base, {"e": {"f": None, "g": 1}})["e"] == {"g": 1}
    assert base == {"a": {"b": 1, "c": 2}, "d": [1, 2]}


BAD = "config/datasets.yaml: toy"
CSV = "source: {csv: toy.csv}, label: y, positive: 'yes'"
DATASETS = [
    ("{}", ": the key 'source' is missing"),
    ("{source: {rows: 3}}", ".source: needs exactly one of simulate, sklearn, csv, idx and sparse"),
    (
        "{source: {simulate: seperable}}",
        ".source.simulate: must be one of separable, unseparable, ",
    ),
    (
        "{source: {simulate: separable, rows: 9, columns: 2}}",
        ".source: the key 'margin' is missing",
    ),
    (
        "{source: {simulate: linear, rows: 9, columns: 2, condition: 1, noise: 0.1}}",
        ": the key 'target' is missing: its name and bounds",
    ),
    (
        "{source: {simulate: linear, rows: 9, columns: 2, condition: 1, noise: 0.1, margin: 0.1}, "
        "target: {column: a, bounds: [0, 1]}}",
        ".source: linear takes no 'margin'",
    ),
    (
        "{source: {csv: a.csv, holdout: 5}, label: y, positive: a}",
        ".source: csv takes no 'holdout'",
    ),
    (
        "{source: {simulate: mixture, rows: 9, data_replicates: 2}}",
        ".source: mixture takes no 'data_replicates'",
    ),
    ("{source: {csv: a.csv}, label: y}", ": the key 'positive' is missing"),
    ("{CSV, bounds: {a: [0]}}", ".bounds.a: needs at least 2 values"),
    ("{CSV, bounds: {a: [1, 0]}}", ".bounds.a: must be [low, high] with low < high, not [1, 0]"),
    ("{CSV, bounds: {y: [0, 1]}}", ".bounds: the label 'y' is no feature"),
    (
        "{CSV, steps: [{row_nrom: {}}]}",
        ".steps[0]: no step 'row_nrom'; did you mean 'row_norm'?",
    ),
    ("{CSV, steps: [{clip: null}]}", ".steps[0]: clip needs the option 'radius'"),
    (
        "{CSV, steps: [{scale_by_constants: {a: 3}}, {row_norm: {}}]}",
        ".steps[0].scale_by_constants.a: must be two numbers: [a, b]",
    ),
]


@pytest.mark.parametrize(("entry", "expected"), DATASETS, ids=[entry for entry, _ in DATASETS])
def test_a_bad_data_set(project, entry, expected):
    path = project / "config/datasets.yaml"
    path.write_text(path.read_text() + f"\ntoy: {entry.replace('CSV', CSV)}\n")
    assert message().startswith(BAD + expected)


OWN = [
    ("{CSV}", "tow.csv", "", ".source.csv: no file 'toy.csv'; did you mean 'tow.csv'?"),
    ("{CSV}", "toy.csv/in", "", ".source.csv: 'toy.csv' cannot be read (Is a directory)"),
    (
        "{source: {idx: {images: a/images, labels: a/labels}}, positive: 4}",
        "a/images",
        "",
        ".source.idx.labels: no file 'a/labels'; put it there, or correct the path",
    ),
    ("{CSV}", "toy.csv", "", ".source.csv: toy.csv: is empty"),
    ("{CSV}", "toy.csv", "a,y\n", ".source.csv: toy.csv: has a header but no rows"),
    (
        "{CSV, bounds: {age: [0, 1]}}",
        "toy.csv",
        "agee,y\n1,yes\n",
        ".source.csv: toy.csv: has no column 'age'; did you mean 'agee'?",
    ),
    (
        "{CSV}",
        "toy.csv",
        "a;y\n1;yes\n",
        ".source.csv: toy.csv: has no column 'y'; its cells seem to be separated by \";\": set "
        '`delimiter: ";"`',
    ),
]


@pytest.mark.parametrize(("entry", "file", "content", "expected"), OWN)
def test_data_files_of_ones_own_are_looked_at(project, entry, file, content, expected):
    path = project / "config/datasets.yaml"
    path.write_text(path.read_text() + f"\ntoy: {entry.replace('CSV', CSV)}\n")
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(content)
    merged, experiments, datasets = load()
    config.check_own_files(experiments, datasets, merged.files)  # no experiment uses the file
    experiments["cm08"].values["datasets"] = ["toy"]
    with pytest.raises(ConfigError) as caught:
        config.check_own_files(experiments, datasets, merged.files)
    assert str(caught.value) == BAD + expected


@pytest.mark.parametrize(
    "entry",
    [
        "{CSV, bounds: {a: {find: true}}}",
        "{source: {csv: toy.csv}, target: {column: y, bounds: {find: {least: 0}}}, bounds: {a: [0, 1]}}",
    ],
)
def test_bounds_that_are_found_are_for_releases_alone(project, entry):
    path = project / "config/datasets.yaml"
    path.write_text(path.read_text() + f"\ntoy: {entry.replace('CSV', CSV)}\n")
    (project / "toy.csv").write_text("a,y\n" + "1,yes\n2,no\n" * 5)
    load()  # no experiment uses it
    (project / "more.yaml").write_text("settings: {cm08: {datasets: [toy], figures: null}}")
    assert "`find`, which a release pays for: a benchmark takes [low, high]" in message("more.yaml")


def test_a_training_size_beyond_a_csv_whose_rows_are_counted(project):
    path = project / "config/datasets.yaml"
    path.write_text(path.read_text() + f"\ntoy: {{{CSV}}}\n")
    (project / "toy.csv").write_text("a,y\n" + "1,yes\n2,no\n" * 5)
    (project / "more.yaml").write_text(
        "settings: {cm08: {datasets: [toy], tune: {folds: 2}, sweeps: {learning: {train_sizes: [9]},"
        " epsilon: {train_sizes: [8]}, table: {train_sizes: [8]}}, figures: null}}"
    )
    assert message("more.yaml") == (
        "more.yaml: settings.cm08: sweeps.learning.train_sizes: 9 is more than the 8 training rows "
        "of toy (10 rows in 5 folds)"
    )


def test_the_templates_can_be_copied(project):
    shutil.copy("config/experiments/_template.yaml", "config/experiments/my_study.yaml")
    path = project / "config/datasets.yaml"
    template = re.search(r"(?:^# .*\n|^#\n)+\Z", path.read_text(), flags=re.MULTILINE)[0]
    entry = re.search(r"^# my_survey:\n(?:# .*\n)+", template, flags=re.MULTILINE)[0]
    path.write_text(path.read_text() + re.sub(r"^# ", "", entry, flags=re.MULTILINE))
    assert "my_source" not in sources.load() and "_template" not in sources.load()
    shutil.copytree("config/sources/_template", "config/sources/my_source")
    experiment = Path("config/experiments/my_study.yaml").rename(
        "config/sources/my_source/my_study.yaml"
    )
    experiment.write_text("source: my_source\n" + experiment.read_text())
    _, experiments, datasets = load()
    assert {"my-rises", "my-speed"} == set(experiments["my_study"].claims)
    assert len(experiments["my_study"].methods) == 4
    assert set(datasets["my_survey"].bounds) == {"age", "income", "visits"}
    assert set(sources.load()["my_source"].statements("claims")) == {"my-rises", "my-speed"}

"""One command and a plugin of pytest tell the faults of programs in a sentence, and accuse no sound one."""

import math
import os
import re
import runpy
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dp_audit import __main__, check, small_pairs
from dp_audit.programs import Program, load
from dp_privacy.accounting import ADD_REMOVE, gaussian_sigma
from dp_privacy.errors import Refused
from project import ROOT

GUIDE = (ROOT / "workflow/guides/check_a_program.md").read_text(encoding="utf-8")
E, D = 1.0, 1e-5
SUM = gaussian_sigma(E, D, 2.0)
PROGRAMS = ROOT / "tests/unit/test_replayed_programs.py"  # sound and flawed ones


@pytest.fixture(autouse=True)
def few_releases(monkeypatch):
    """Attacks make 2,000 releases of four pairs, not 20,000 of 16, which decide all that is asked here."""
    monkeypatch.setattr(check, "TRIALS", (400, 2000))
    monkeypatch.setattr(check, "ATTACKED", 4)


def run_module(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(thing, epsilon=E, delta=D, domain=None, **settings):
    return check.check(
        Program(thing, epsilon, delta), domain, **{"count": 40, "seconds": 20.0} | settings
    )


class FittedWithNoise:
    """Logistic regression of scikit-learn's form, with a sound fit."""

    def __init__(self, epsilon=1.0, delta=0.0, rng=None):
        self.epsilon, self.delta, self.rng = epsilon, delta, rng

    def fit(self, X, y):
        w, noise = np.zeros(X.shape[1]), gaussian_sigma(self.epsilon, self.delta, 2 * math.sqrt(3))
        for _ in range(3):
            gradient = X.T @ (y / (1 + np.exp(y * (X @ w))))
            w = w + 0.1 * (gradient + self.rng.normal(0, noise, len(w)))
        self.coef_ = w
        return self


class WithErrorsOfRawRows(FittedWithNoise):
    """Its standard errors come from the rows."""

    def fit(self, X, y):
        super().fit(X, y)
        share = 1 / (1 + np.exp(-X @ self.coef_))
        information = X.T @ (X * (share * (1 - share))[:, None]) + 0.1 * np.eye(X.shape[1])
        self.bse_ = np.sqrt(np.diag(np.linalg.inv(information)))
        return self


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("noise_for_the_largest_norm", r"needs at least \d+.* the scale of noise .* from \.1 to 1"),
        ("clipped_after_the_mean", r"needs at least (5|6)\.\d+ at delta 1e-05: .* rows"),
        ("half_of_the_noise", r"needs at least 2\.15 at delta 1e-05: .* rows, one of them from "),
        ("exact_score_of_a_choice", r"on no random choice"),
    ],
)
def test_faults_are_told_in_one_sentence(name, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = "--epsilon", "1", "--delta", str(D), "--pairs", "30", "--seconds", "20"
    assert __main__.main([f"{PROGRAMS}:{name}", *settings]) == 1
    (sentence,) = capsys.readouterr().out.splitlines()
    assert sentence.startswith(name) and re.search(words, sentence)
    runpy.run_path(str(tmp_path / f"fault_{name}.py"))
    assert capsys.readouterr().out.startswith(check.FAULTS)


@pytest.mark.parametrize(
    ("name", "delta"),
    [
        *(("in_place", D), ("above_threshold", 0), ("one_epoch", D)),
        pytest.param("noisy_maximum", 0, marks=pytest.mark.slow),
        pytest.param("gumbel_choice", 0, marks=pytest.mark.slow),
        pytest.param("tilted_system", D, marks=pytest.mark.slow),
    ],
)
def test_sound_programs_are_not_accused(name, delta):
    epsilon = 2.0 if name == "tilted_system" else E
    found = check.check(load(f"{PROGRAMS}:{name}", epsilon, delta), count=40, seconds=30)
    assert not found.fault and not found.unseen
    assert found.sentence.startswith(f"no fault found on {found.pairs} pair")
    assert found.sentence.endswith("; a proof is still needed") and found.pairs > 3
    assert ("replay cannot judge" in found.sentence) == (name not in ("in_place", "one_epoch"))


def test_a_class_releases_what_fit_sets(monkeypatch):
    assert not answer(FittedWithNoise, count=12, seconds=5).fault
    monkeypatch.setattr(
        check, "CLOSE", 2.0
    )  # the epsilon that is needed is found within a factor of 2
    found = answer(WithErrorsOfRawRows, seconds=10)
    assert found.fault and found.epsilon > 2 * E and "depends on the rows" in found.sentence


def test_noise_of_another_generator_is_named_and_attacked():
    def unseen(X, y, rng):
        return X.sum(axis=0) + np.random.laplace(0, 3.0, X.shape[1])  # noqa: NPY002

    found = answer(unseen, seconds=5)
    assert found.unseen and not found.fault and "another generator than rng" in found.sentence

    def tiny(X, y):
        return X.sum(axis=0) + np.random.laplace(0, 0.2, X.shape[1])  # noqa: NPY002

    found = answer(tiny, seconds=10)
    # Replacing -1 by 1 moves a sum by 2, so 10 are needed for one column.
    assert found.fault and found.epsilon > E and "99.9%" in found.sentence


def test_what_is_needed_is_found_exactly():
    """Laplace noise of scale 1 hides a sum that moves by 2 at epsilon 2; labels 0 and 1 move by 1."""

    def labels(X, y, rng):
        return y.sum() + rng.laplace(0, 1.0)

    assert answer(labels, E, 0.0).epsilon == pytest.approx(2.0)
    assert not answer(labels, E, 0.0, small_pairs.Domain(values=(0, 1))).fault
    assert not answer(lambda rows, rng: rows[:, 0].sum() + rng.laplace(0, 2.0), E, 0.0).fault
    wide = small_pairs.Domain(bound=3.0)
    found = answer(lambda rows, rng: rows[:, 0].sum() + rng.laplace(0, 2.0), E, 0.0, wide)
    assert found.epsilon == pytest.approx(3.0)


def test_a_scale_s_epsilon_is_the_largest_at_which_the_fault_shows():
    def scaled(X, y, rng):
        return len(X) + rng.normal(0, 2.0 if y[0] > 0 else 1.0)

    found = answer(scaled)
    program = Program(scaled, E, D)
    refuted = [
        program.replay(found.sides, found.epsilon * k).finding in check.FAULTS for k in (1, 1.05)
    ]
    assert refuted == [True, False]


def test_a_record_is_left_out_for_add_remove():
    def size(X, y, rng):
        return len(X), y.sum() + rng.laplace(0, 2.0)

    assert not answer(size, E, 0.0).fault
    found = answer(size, E, 0.0, small_pairs.Domain(adjacency=ADD_REMOVE))
    assert found.fault and "left out" in found.sentence and len(found.sides[0][0]) > 1


def test_the_search_finds_what_no_fixed_pair_shows():
    def rare(X, y, rng):  # too little noise for the sum of squares of two columns in two rows
        scale = 0.5 if X.shape == (2, 2) else 2.0
        return (X**2).sum() + rng.laplace(0, scale)

    found = answer(rare, E, 0.0, count=240)
    assert found.epsilon == pytest.approx(2.0) and found.sides[0][0].shape == (2, 2)


def test_a_mechanism_is_taken_by_name(capsys):
    words = "--epsilon", "1", "--pairs", "12", "--seconds", "5"
    assert __main__.main(["laplace_coordinates", *words]) == 0
    assert "no fault found on 12 pairs" in capsys.readouterr().out


def test_public_rows_have_neighbours_too(tmp_path, capsys):
    """Three columns, of which the third is fitted without noise if five columns are given."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(0, 0.4, (30, 5)), rng.choice([-1, 1], 30)])
    path, program = tmp_path / "rows.csv", tmp_path / "wide.py"
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,e,y", comments="")
    program.write_text("def wide(X, y, rng):\n    return X[:, 4].sum()\n")
    settings = f"{program}:wide", "--epsilon", "1", "--script", str(tmp_path / "shows.py")
    assert __main__.main([*settings]) == 2
    assert "ends with an error on all pairs (both data sets: IndexError" in capsys.readouterr().err
    assert __main__.main([*settings, "--rows", str(path), "--pairs", "40"]) == 1
    assert re.search(r"(20|30) rows, one of them", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.py:f"], "there is no file none.py"),
        (["output_perturbatoin"], "did you mean 'output_perturbation'"),
        ([f"{PROGRAMS}:in_plaec"], "did you mean 'in_place'"),
        ([f"{PROGRAMS}:in_place", "--set", "k"], "not of the form NAME=VALUE"),
        ([f"{PROGRAMS}:in_place", "--set", "k=1"], "has no argument 'k'"),
        ([f"{PROGRAMS}:in_place", "--bound", "0"], "must be positive"),
        ([f"{PROGRAMS}:in_place", "--labels", "1", "0"], "the smaller one"),
        ([f"{PROGRAMS}:in_place", "--rows", "none.csv"], "no CSV file of numbers"),
    ],
)
def test_unusable_arguments_are_told_in_one_sentence(words, message, capsys):
    assert __main__.main([*words, "--epsilon", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_program_that_exits_is_no_program_without_fault(tmp_path, capsys):
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    assert __main__.main([f"{tmp_path}/exits.py:f", "--epsilon", "1"]) == 2

    def exits(X, y, rng):
        raise SystemExit(0)

    with pytest.raises(Refused, match="ends the interpreter"):
        answer(exits)
    with pytest.raises(Refused, match="replace-one or add-remove"):
        answer(exits, domain=small_pairs.Domain(adjacency="add_remove"))


def test_a_mechanism_holds_where_a_record_is_left_out():
    program = load("mean_direction", E, D)
    domain = small_pairs.Domain(adjacency=ADD_REMOVE)
    found = check.check(program, domain, count=8, seconds=5)
    assert not found.fault and found.pairs > 5


def test_missing_cells_are_tried_if_they_may_occur(tmp_path, monkeypatch, capsys):
    """Clipping lets NaN pass; the script repeats it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.py").write_text(
        "import numpy as np\ndef clips(X, y, rng):\n"
        "    return np.clip(X[:, 0], -1, 1).sum() + rng.laplace(0, 2.0)\n"
    )
    words = "clips.py:clips", "--epsilon", "1", "--pairs", "20", "--seconds", "10"
    assert __main__.main([*words]) == 0
    assert __main__.main([*words, "--missing"]) == 1
    assert "to (nan, 1, 0)" in capsys.readouterr().out
    runpy.run_path("fault_clips.py")
    shown = capsys.readouterr().out
    assert shown.startswith("without noise a value before noise is not a finite number")


def test_releases_are_looked_at_before_they_are_attacked():
    """Only replacing one label of few tells here, by choices that no replay judges."""

    def tells(X, y, rng):
        few = X.shape == (2, 1)
        return (y * np.where(rng.random(len(y)) < (0.05 if few else 0.45), -1, 1)).tolist()

    found = answer(tells, seconds=15, delta=0.0, count=120)
    assert found.fault and found.sides[0][0].shape == (2, 1)


def test_settings_are_numbers_or_words():
    def scaled(X, y, rng, scale, kind):
        assert kind == "sum"
        return X[:, 0].sum() + rng.laplace(0, scale)

    with pytest.raises(Refused, match="by --set NAME=VALUE"):
        Program(scaled, E)
    for scale, fault in ((2, False), (1, True)):
        assert check.check(Program(scaled, E, scale=scale, kind="sum"), count=30).fault == fault


def test_a_slow_program_takes_the_time_that_is_given():
    def slow(X, y, rng):
        time.sleep(0.01)
        return X.sum(axis=0) + np.sqrt(rng.uniform(0, 400, X.shape[1]))

    start = time.monotonic()
    assert check.check(Program(slow, E, D), seconds=8).pairs
    assert time.monotonic() - start < 20


def test_pairs_are_neighbours_within_the_bound():
    domain = small_pairs.Domain(2.0, (0, 1))
    search = small_pairs.Search(domain, np.random.default_rng(0))
    for (X, y), (Z, z) in [*small_pairs.fixed(domain), *(search.next()[1] for _ in range(300))]:
        assert X.shape == Z.shape and ((X != Z).any(axis=1) | (y != z)).sum() == 1
        for rows, labels in ((X, y), (Z, z)):
            assert np.linalg.norm(rows, axis=1).max() <= 2 * (1 + 1e-12)
            assert {*labels.tolist()} <= {0, 1}


def guide(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_guide_does_as_it_says(tmp_path):
    """The command, its sentence, and the test that fails with it."""
    program, test = guide("python")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    (tmp_path / "test_program.py").write_text(
        test + "\n\n@dp_claim(epsilon=3, pairs=30)\ndef test_sound(rows, rng):\n"
        "    return rows[:, 0].sum() + rng.laplace(0, 2.0)\n",
        encoding="utf-8",
    )
    (command,) = re.findall(r"^    \$ python -m (.*)$", GUIDE, re.MULTILINE)
    done = run_module(tmp_path, *command.split())
    assert done.returncode == 1 and [done.stdout] == guide("text")
    assert run_module(tmp_path, "fault_total").stdout.startswith("without noise")
    plugin = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    words = (
        "pytest",
        "-p",
        plugin["pytest11"]["dp_audit"],
        "-q",
        "-m",
        "dp_claim",
        "--strict-markers",
    )
    done = run_module(tmp_path, *words)
    assert done.returncode == 1 and done.stdout.count(guide("text")[0].strip()) >= 1
    assert "1 failed, 1 passed" in done.stdout


def test_the_guide_has_every_option():
    options = {each for action in __main__.arguments()._actions for each in action.option_strings}
    assert options - {"-h", "--help"} <= {*re.findall(r"--[a-z]+", GUIDE)}
    assert Path(ROOT / "workflow/guides/check_a_program.md").stat().st_size < 5000

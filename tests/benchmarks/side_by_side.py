"""Give the programs of `claims.py` to this project's check and to other auditing tools.

    python tests/benchmarks/side_by_side.py [ours] [dp_recorder] [dp_auditorium] [--only NAME ...]

Each tool gets about a minute for a program. The others run if Python can import them; neither is in a
package registry. Results go to results/benchmarks/side_by_side.csv: whether a fault was reported, processor
seconds, and what was said.

dp-recorder compares values before noise, so an author marks the functions that add noise, and states
their sensitivities. Here, both of numpy's draws around a value are marked, with the sensitivity for which
the draw would cost the whole claim. It gets a pair that our check refutes, and its distributional audit.

DP-Auditorium gets neighbours from a generator. Here it gets the same pair, and then the pairs with which
our check begins. Its tester is the hockey stick divergence of its example, with that example's classifier,
tanh, releases (10,000 of each side) and failure probability (5 %). Releases are first centred and scaled by
200 others, since tanh makes large numbers equal.
"""

import argparse
import csv
import importlib
import importlib.util
import itertools
import math
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).parent)]

import claims

from dp_audit import check, small_pairs
from dp_audit.programs import Program
from dp_audit.runs import numbers_of, released_parts
from dp_privacy.accounting import gaussian_sigma
from dp_privacy.errors import Refused

SECONDS = 60.0


def ours(claim, sides):
    program = Program(claim.run, claim.epsilon, claim.delta)
    answer = check.check(program, claim.domain, seconds=SECONDS)
    return answer.fault, answer.sentence, answer.sides


# ---- dp-recorder


class Marked:
    """A generator whose draws around a value are functions that dp-recorder knows."""

    def __init__(self, claim, audit_spec):
        def l1(one, two):
            distance = float(np.abs(one - two).sum())
            return distance if np.isfinite(distance) else math.inf

        def l2(one, two):
            distance = float(np.linalg.norm(one - two))
            return distance if np.isfinite(distance) else math.inf

        def laplace(values, sensitivity, scale):
            return values + np.random.laplace(size=np.shape(values)) * scale  # noqa: NPY002

        def gaussian(values, sensitivity, scale):
            return values + np.random.normal(size=np.shape(values)) * scale  # noqa: NPY002

        self._laplace, self._gaussian = (
            audit_spec(kind, input_arg="values", sensitivity_arg="sensitivity", metric_fn=metric)(f)
            for kind, metric, f in (("laplace", l1, laplace), ("gaussian", l2, gaussian))
        )
        self.claim, self.other = claim, np.random.default_rng(0)
        self.only_marked = True

    def laplace(self, loc=0.0, scale=1.0, size=None):
        values = np.broadcast_to(np.asarray(loc, dtype=float), size or np.shape(loc)).copy()
        return self._laplace(values, self.claim.epsilon * float(np.max(scale)), scale)

    def normal(self, loc=0.0, scale=1.0, size=None):
        values = np.broadcast_to(np.asarray(loc, dtype=float), size or np.shape(loc)).copy()
        of_one = gaussian_sigma(self.claim.epsilon, self.claim.delta, 1.0)
        return self._gaussian(values, float(np.max(scale)) / of_one, scale)

    def __getattr__(self, name):
        self.only_marked = False
        return getattr(self.other, name)


def dp_recorder(claim, sides):
    primitives = importlib.import_module("dp_recorder.auditing.audit_primitives")
    Auditor, audit_spec = primitives.Auditor, primitives.audit_spec
    ensure_equality = primitives.ensure_equality

    auditor = Auditor()

    def run(side):
        rng = Marked(claim, audit_spec)
        released = claim.run(*(each.copy() for each in side), rng)
        if rng.only_marked:  # then the release follows from the noisy values
            ensure_equality(release=repr(released_parts(released)))

    with auditor:
        run(sides[0])
    if not auditor.log:
        return None, "no noise is added to a value", sides
    auditor.set_replay()
    try:
        with auditor:
            run(sides[1])
        auditor.validate_records()
    except (AssertionError, RuntimeError, ValueError) as error:
        return True, str(error), sides
    auditor.run_distributional_audit(n_samples=20_000, alpha=0.05)
    if auditor.compute_overall_pld() is None:
        return False, "no noise was marked", sides
    needed = auditor.get_overall_current_guarantee(max(claim.delta, 1e-9))
    return needed > claim.epsilon, f"distributional audit: {needed:.3g}", sides


# ---- DP-Auditorium


def dp_auditorium(claim, sides):
    names = (
        "privacy_test_runner",
        "configs.privacy_property",
        "configs.privacy_test_runner_config",
    )
    names += ("configs.property_tester_config", "testers.hockey_stick_tester")
    privacy_test_runner, of, configs, testers, stick = (
        importlib.import_module(f"dp_auditorium.{name}") for name in names
    )

    rng, start, tried = np.random.default_rng(0), time.monotonic(), 0
    candidates = itertools.chain([sides], small_pairs.fixed(claim.domain))

    def generate(_divergence):
        sides = next(candidates)
        both = [drawn(side, 100) for side in sides]
        width = min(each.shape[1] for each in both)
        both = np.vstack([each[:, :width] for each in both])
        generate.centre = np.median(both, axis=0)
        generate.spread = np.maximum(both.std(axis=0), 1e-12)
        return sides

    def mechanism(side, count):
        made = drawn(side, count)
        width = min(made.shape[1], len(generate.centre))
        return (made[:, :width] - generate.centre[:width]) / generate.spread[:width]

    def drawn(side, count):
        rows = []
        for _ in range(count):
            try:
                released = claim.run(*(each.copy() for each in side), rng)
                rows.append(numbers_of(released_parts(released)))
            except Exception:
                rows.append(np.full(1, -1e3))
        width = max(map(len, rows))
        made = np.full((count, width), -1e3)
        for row, each in zip(made, rows, strict=True):
            row[: len(each)] = each
        return np.nan_to_num(made, nan=1e3)

    tester = stick.HockeyStickPropertyTester(
        config=testers.HockeyStickPropertyTesterConfig(
            training_config=stick.make_default_hs_training_config(),
            approximate_dp=of.ApproximateDp(epsilon=claim.epsilon, delta=claim.delta),
        ),
        base_model=stick.make_default_hs_base_model(),
    )
    # One pair a runner, so that a program takes about a minute.
    while tried < 10 and time.monotonic() - start < SECONDS:
        runner = privacy_test_runner.PrivacyTestRunner(
            config=configs.PrivacyTestRunnerConfig(
                property_tester=configs.PropertyTester.HOCKEY_STICK_TESTER,
                max_num_trials=1,
                failure_probability=0.05 / 10,
                num_samples=10_000,
                post_processing=configs.PostProcessing.TANH,
            ),
            dataset_generator=generate,
            property_tester=tester,
        )
        try:
            result, tried = runner.test_privacy(mechanism, claim.name), tried + 1
        except ValueError as error:
            if "rank" in str(error) or "incompatible" in str(error) or "shape" in str(error):
                tried += 1  # releases of unlike length
                continue
            raise
        if result.found_privacy_violation is not None:
            return True, f"delta at least {result.lower_bound_divergence_estimates[0]:.3g}", sides
    return False, f"{tried} pairs", sides


TOOLS = {"ours": ours, "dp_recorder": dp_recorder, "dp_auditorium": dp_auditorium}


def main():
    global SECONDS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tools", nargs="*", choices=[[], *TOOLS])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", nargs="+", default=[])
    told = parser.parse_args()
    SECONDS = told.seconds
    tools = [
        name for name in told.tools or TOOLS if name == "ours" or importlib.util.find_spec(name)
    ]
    path = ROOT / "results" / "benchmarks" / "side_by_side.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        for kind, each in (("fault", claims.FAULTS), ("sound", claims.SOUND)):
            for claim in each:
                if told.only and claim.name not in told.only:
                    continue
                sides = worst(claim)
                for name in tools:
                    began = time.process_time()
                    try:
                        found, said, _ = TOOLS[name](claim, sides)
                    except (Refused, TypeError, IndexError) as error:
                        found, said = None, f"{type(error).__name__}: {error}"
                    row = kind, claim.name, name, found, f"{time.process_time() - began:.1f}", said
                    table.writerow(row)
                    file.flush()
                    print(*row, flush=True)


def worst(claim):
    """The pair on which replays of our check are worst, or else the first of its pairs."""
    for sides in small_pairs.fixed(claim.domain):
        found = Program(claim.run, claim.epsilon, claim.delta).replay(sides, claim.epsilon)
        if found.finding in check.FAULTS:
            return sides
    search = small_pairs.Search(claim.domain, np.random.default_rng(0))
    for _ in range(40):
        sides = search.next()[1]
        found = Program(claim.run, claim.epsilon, claim.delta).replay(sides, claim.epsilon)
        if found.finding in check.FAULTS:
            return sides
    X = np.zeros((3, 1))
    X[0] = claim.domain.bound
    y = np.full(3, claim.domain.values[1])
    return (X, y), (-X, y)


if __name__ == "__main__":
    main()

import csv
import io

import pytest

from reporting import forecast
from reporting.costs import Measured
from study.configuration.experiment import Experiment

VALUES = {
    "folds": 5,
    "restarts": 200,
    "methods": {"private": {"private": True}, "plain": {"private": False}},
    "searches": {
        "best": {
            "method": "private",
            "folds": 4,
            "simulations": 3,
            "grid": {"lambda": [1, 0.1], "batch": [5, 2, 1]},
        }
    },
}
TABLE = """rule,experiment,jobs,work,cpu_seconds
run,old,10,10000000,100.5
run,new,2,2000000,10.1
table,,3,3,2.4
"""


def seconds(*jobs):
    rows = csv.DictReader(io.StringIO(TABLE))
    names = ("new", "new/readings/a", "unmeasured")
    experiments = {name: Experiment(name, VALUES) for name in names}
    return list(forecast.seconds(dict(enumerate(jobs)), experiments, rows).values())


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("run", "d/private/n=400/eps=0.1.csv", 400 * 5 * 200),
        ("run", "d/plain/n=400/eps=inf.csv", 400 * 5),
        ("fit", "d/l2/n=400.npz", 400 * 5),
        ("search", "best/d/n=400/eps=1.json", 400 * 3 * 4 * 6),
        ("table", "errors.csv", 1),
    ],
)
def test_work_is_rows_times_folds_times_draws(rule, path, expected):
    assert forecast.work(rule, path, Experiment("new", VALUES)) == expected


def test_time_grows_with_the_work_and_the_start_does_not():
    file = "results/{}/runs/d/private/n=2000/eps=0.1.csv"  # work 2,000,000
    folders = ("new", "new/readings/a", "unmeasured")
    actual = seconds(*(("run", file.format(folder)) for folder in folders))
    assert actual == pytest.approx([10.05, 10.05, 0.05 + 2e6 * (100 + 10) / 12e6])


def test_jobs_that_do_not_train_take_their_rules_mean_and_unmeasured_rules_are_short():
    jobs = (
        ("table", "results/new/tables/errors.csv"),
        ("table", None),
        ("unheard_of", "results/x.csv"),
    )
    assert seconds(*jobs) == pytest.approx([0.8, 0.8, forecast.START])


def test_a_table_has_the_totals_of_measured_jobs():
    measured = [
        Measured("run", folder, f"d/private/n={n}/eps=1", 9.0, cpu, 50.0)
        for folder, n, cpu in (("new", 10, 1.0), ("new", 20, 2.0), ("new/readings/a", 30, 6.0))
    ]
    measured += [Measured("run", "gone", "d/private/n=10/eps=1", 1, 1, 1)]
    measured += [Measured("table", name, "t", 9.0, cpu, 50.0) for name, cpu in (("a", 1), ("b", 6))]
    experiments = {name: Experiment(name, VALUES) for name in ("new", "new/readings/a")}
    assert forecast.totals(measured, experiments) == [
        ("run", "new", 3, 60 * 5 * 200, 9.0),
        ("table", "", 2, 2, 7.0),
    ]


def test_by_the_clock_no_run_is_shorter_than_its_longest_job():
    assert forecast.by_the_clock([10.0, 20.0, 30.0], 2) == 30.0
    assert forecast.by_the_clock([10.0] * 8, 2) == 40.0
    assert forecast.by_the_clock([], 2) == 0.0

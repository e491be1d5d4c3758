import csv
import io

import pytest

from reporting import forecast
from reporting.costs import Measured

VALUES = {
    "folds": 5,
    "restarts": 200,
    "methods": {"private": {"private": True}, "plain": {"private": False}},
    "searches": {
        "best": {"folds": 4, "simulations": 3, "grid": {"lambda": [1, 0.1], "batch": [5, 2, 1]}}
    },
}
RECORDED = """rule,experiment,name,jobs,work,cpu_seconds,peak_mb
run,old,private,10,1000000,10.3,90
run,old,plain,10,5000,0.5,80
table,old,table,3,1,0.8,120
"""


def costs():
    return forecast.Costs(csv.DictReader(io.StringIO(RECORDED)))


def job(rule, path):
    return forecast.job(rule, "new", path, {"new": VALUES})


def test_work_is_rows_times_folds_times_draws():
    assert job("run", "d/private/n=400/eps=0.1.csv").work == 400 * 5 * 200
    assert job("run", "d/plain/n=400/eps=inf.csv").work == 400 * 5
    assert job("fit", "d/l2/n=400.npz").work == 400 * 5
    assert job("table", "errors.csv").work == 1
    search = job("search", "best/d/n=400/eps=1.json")
    assert (search.name, search.work) == ("best", 400 * 3 * 4 * 6)
    assert forecast.job("prepare", "data", "a.npz", {"new": VALUES}).experiment == ""


def test_time_grows_with_the_work_and_the_start_does_not():
    # twice the recorded work: 0.05 + 2 * 10.25
    assert costs().of(job("run", "d/private/n=2000/eps=0.1.csv"))[0] == pytest.approx(20.55)
    assert costs().of(job("run", "d/private/n=500/eps=0.1.csv"))[0] == pytest.approx(5.175)
    assert costs().of(job("table", "errors.csv")) == (pytest.approx(0.8), 120)
    assert costs().of(job("unheard_of", "x.csv")) is None


def test_totals_per_experiment():
    jobs = [job("run", f"d/private/n=1000/eps={e}.csv") for e in (0.1, 0.2)]
    jobs += [job("unheard_of", "x.csv"), forecast.job("table", "data", "t.csv", {})]
    totals = forecast.forecast(jobs, costs())
    assert totals["new"] == (3, pytest.approx(2 * 10.3 + forecast.START), 90, 1)
    assert totals[""] == (1, pytest.approx(0.8), 120, 0)


def test_a_record_is_the_means_of_jobs_that_train():
    measured = [
        Measured("run", "new", f"d/private/n={n}/eps=1", 9.0, cpu, 50.0 + n)
        for n, cpu in ((10, 1.0), (20, 2.0), (30, 6.0))
    ]
    measured += [Measured("run", "gone", "d/private/n=10/eps=1", 1, 1, 1)]
    (row,) = forecast.record(measured, {"new": VALUES})
    assert row == ("run", "new", "private", 3, 20 * 5 * 200, 3.0, 80.0)
    tables = [
        Measured("table", "new", name, 9.0, cpu, 50.0)
        for name, cpu in zip("abc", (1, 2, 6), strict=True)
    ]
    (row,) = forecast.record(tables, {"new": VALUES})
    assert row == ("table", "new", "table", 3, 1, 2, 50.0)

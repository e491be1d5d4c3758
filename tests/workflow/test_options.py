import csv

import pytest

STUDY = """
title: "Options as axes"
datasets: [wdbc_row_norm]
folds: 2
restarts: 2
lambda: 0.01
methods:
  nonprivate: {}
  sgd:
    mechanism: dp_sgd
    vary: {dimensions: [4, null], batch: [20, 5]}
    label: "d{dimensions}_b{batch}"
sweeps:
  main: {train_sizes: [100], epsilons: [1, 10]}
  family: {train_sizes: [200], epsilons: [10], methods: ["d*_b*"]}
figures:
  batches:
    kind: option_curve
    title: "Error against the batch"
    sweep: main
    options: {along: batch, log_along: true}
"""


@pytest.mark.slow
def test_a_varied_option_is_a_column_and_an_axis(fresh):
    project = fresh("options")
    project.write("config/experiments/options.yaml", STUDY)
    project.snakemake("--", "options")
    with (project / "results/options/results.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    labels = {"d4_b20": ("4", "20"), "d4_b5": ("4", "5"), "dnull_b20": ("null", "20")}
    labels |= {"dnull_b5": ("null", "5"), "nonprivate": ("", "")}
    assert [*rows[0]][-2:] == ["dimensions", "batch"]
    cells = [(r["method"], r["train_size"], r["epsilon"]) for r in rows]
    assert {(r["method"], r["dimensions"], r["batch"]) for r in rows} == {
        (label, *values) for label, values in labels.items()
    }
    assert set(cells) == {
        ("nonprivate", "100", "inf"),
        *((m, "100", e) for m in labels if m != "nonprivate" for e in ("1", "10")),
        *((m, "200", "10") for m in labels if m != "nonprivate"),
    }
    assert {row["status"] for row in rows} == {"ok"}
    assert (project / "results/options/figures/batches.png").stat().st_size > 10000
    assert (project / "results/options/runs/wdbc_row_norm/d4_b20").is_dir()

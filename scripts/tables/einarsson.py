"""Tables of Einarsson (2018), with published values beside ours."""

from study import facts
from study.canonical import epsilon


def table_a_1(experiment, spec, draws):
    """Table A.1: variance of the noise per epsilon, mean and variance of the weights, per size.

    Ours are averages over simulations; published values stand beside them at the published sizes. The
    noise variance of a single simulation, over d weights, has a relative error of about sqrt(5/d).
    """
    published = facts.read(experiment.source).values["tables"]["table_a_1"]
    private = draws[draws["noise_variance"].notna()]
    epsilons = sorted(private["epsilon"].unique())
    columns = ["dataset", "train_size", "lambda", "simulations"]
    for value in epsilons:
        name = f"noise_variance_eps_{epsilon(value)}"
        columns += [name, f"{name}_published"]
    for name in ("weights_mean", "weights_variance"):
        columns += [name, f"{name}_published"]
    columns.append("weights_variance_ratio")
    rows = []
    for (dataset, size), group in private.groupby(["dataset", "train_size"], sort=True):
        known = published.get(size, {})
        # One epsilon's cell: every epsilon's draws perturb the same fits.
        cell = group[group["epsilon"] == epsilons[0]]
        lam = read_lambda(experiment, cell.iloc[0])
        row = [dataset, size, lam, cell["fold"].nunique()]
        for value in epsilons:
            name = f"noise_variance_eps_{epsilon(value)}"
            ours = group.loc[group["epsilon"] == value, "noise_variance"].mean()
            row += [ours, known.get(name, float("nan"))]
        for name in ("weights_mean", "weights_variance"):
            row += [cell[name].mean(), known.get(name, float("nan"))]
        rows.append([*row, row[-2] / row[-1]])
    return columns, rows


def read_lambda(experiment, cell):
    """lambda of a cell, which the configuration states or its search chose."""
    lam = experiment.regularisation(
        experiment.methods[cell["method"]],
        cell["dataset"],
        int(cell["train_size"]),
        cell["epsilon"],
    )
    return lam.settings()[0]

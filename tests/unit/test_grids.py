"""Heat maps of searches show sums and means from the searches' files."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from configured import entry
from sources.einarsson_2018.figures import search_grid
from study.configuration.cell import Cell
from study.configuration.experiment_keys import Method

EXPERIMENT = SimpleNamespace(
    name="study",
    methods={
        "dp_sgd": Method(mechanism="dp_sgd", title="private"),
        "sgd": Method(mechanism="sgd", title="plain"),
    },
)


@pytest.fixture
def searches(tmp_path):
    """Searches' files, by cell."""
    rng, result = np.random.default_rng(1), {}
    for method, epsilon in (("dp_sgd", 0.1), ("dp_sgd", 1.0), ("sgd", np.inf)):
        for size in (90, 180):
            rows = [
                {"lambda": lam, "batch": batch, "rate": rate}
                for lam in ([1, 0.1, 1e-20] if method == "dp_sgd" else [1, 0.1])
                for batch in (50, 5)
                for rate in (1, 2)
            ]
            table = pd.DataFrame(rows)
            table["error_mean"] = rng.uniform(0.1, 0.5, len(rows))
            table["wins"] = rng.integers(0, 4, len(rows))
            cell = Cell("digits", method, size, epsilon)
            result[cell] = tmp_path / f"{method}-{size}-{epsilon}.csv"
            table.to_csv(result[cell], index=False)
    return result


def spec(**options):
    return entry(options={"x": "batch", "y": "lambda", "show": "wins"} | options)


@pytest.mark.parametrize("show", ["wins", "error_mean"])
def test_a_map_has_every_pair_of_its_searches(searches, show):
    fig = search_grid(EXPERIMENT, spec(show=show), searches)
    maps = [axes for axes in fig.axes if axes.get_visible()]
    titles = [axes.get_title("left") for axes in maps]
    assert titles == [r"private, $\varepsilon$ = 0.1", r"private, $\varepsilon$ = 1", "plain"]
    for axes, (method, epsilon) in zip(
        maps, [("dp_sgd", 0.1), ("dp_sgd", 1.0), ("sgd", np.inf)], strict=True
    ):
        tables = [
            pd.read_csv(path)
            for cell, path in searches.items()
            if (cell.method, cell.epsilon) == (method, epsilon)
        ]
        drawn = np.ma.filled(axes.collections[0].get_array().reshape(3, 2), np.nan)
        texts = iter([text.get_text() for text in axes.texts])
        for row, lam in enumerate([1, 0.1, 1e-20]):
            for column, batch in enumerate([5, 50]):
                pairs = [t[(t["lambda"] == lam) & (t["batch"] == batch)][show] for t in tables]
                if method == "sgd" and lam == 1e-20:
                    assert np.isnan(drawn[row, column])
                    continue
                value = (
                    sum(p.sum() for p in pairs)
                    if show == "wins"
                    else np.mean([p.min() for p in pairs])
                )
                assert drawn[row, column] == pytest.approx(value)
                assert next(texts) == (f"{value:.3g}" if value else "")


def test_an_option_that_was_not_searched_is_named(searches):
    with pytest.raises(ValueError, match="has no column 'clip'"):
        search_grid(EXPERIMENT, spec(x="clip"), searches)

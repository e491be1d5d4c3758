# Turns a pandas data frame into a regression table that may be published.
#
# Editors show the parts that begin with `# %%` as cells. The script needs the packages `dp*` with the extra
# `learn`, pandas, and statsmodels for the rows, and takes five seconds:
#
#     python published_table.py [folder for model.json, card.md, table.csv and survey.book]

# %% The rows: 6,366 answers to a 1974 magazine survey, one per woman (Fair, J. Political Economy 1978)
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.datasets import fair

from dp_release.card import card, table_csv
from dp_release.estimators import PrivateClassifier
from dp_release.files import written
from dp_release.request import PUBLIC_EXAMPLE

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
OUT.mkdir(parents=True, exist_ok=True)
survey = fair.load_pandas().data
affair = pd.Series(np.where(survey["affairs"] > 0, "yes", "no"), name="affair")

# %% What is public: the codes of the questionnaire's answers, never the extremes of the rows
# Answers outside a range are clipped to the range. The number of rows is also public.
RANGES = {
    "rate_marriage": (1, 5),
    "age": (17.5, 42),
    "yrs_married": (0.5, 23),
    "religious": (1, 4),
    "educ": (9, 20),
}

# %% The release: it spends epsilon = 1, once, from the budget in survey.book
# Keep survey.book as private as the rows. A second run returns the stored model and spends nothing.
model = PrivateClassifier(
    "affair",
    book=OUT / "survey.book",
    budget={"epsilon": 2, "delta": 2e-6},  # the budget of all releases about these women
    n_rows=6366,
    columns=RANGES,
    target=["no", "yes"],
    unit="one row is one respondent",
    epsilon=1.0,
    delta=1e-6,
    premise=PUBLIC_EXAMPLE,  # for your own rows, state how you chose the settings
    spend=True,  # without this, `fit` only shows the cost
)
model.preview(
    survey[[*RANGES]], affair
)  # for your eyes only: how the rows are read; `fit` needs it
model.fit(survey[[*RANGES]], affair)
print("epsilon {epsilon:g}, delta {delta:g}, {adjacency}: {reason}".format(**model.guarantee_))

# %% The table: log odds per unit of each column, with intervals that account for the noise
table = pd.DataFrame(model.table_)
print(table.to_string(index=False))

# %% What is published: the model, its card, and the table
document = model.model_.document
(OUT / "model.json").write_bytes(written(document))
(OUT / "card.md").write_text(card(document), encoding="utf-8")
(OUT / "table.csv").write_text(table_csv(document), encoding="utf-8")

# %% Predictions for new rows, from the published model only
published = PrivateClassifier.load(OUT / "model.json")
new = pd.DataFrame({"educ": [12, 16], "age": [27, 27], "yrs_married": [6, 6]}).assign(
    rate_marriage=[2, 5], religious=[1, 4]
)
print(new.assign(probability=published.predict_proba(new)[:, 1].round(2)).to_string(index=False))

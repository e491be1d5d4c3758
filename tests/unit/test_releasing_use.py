import csv
import io
import json
import math
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian
from dp_release import book as books
from dp_release import files, making, meaning, rows, using
from dp_release.book import Book, Budget
from dp_release.estimators import PrivateClassifier, PrivateRegressor
from dp_release.request import CHOSEN_WITHOUT, Request
from project import ROOT

N = 400
COLUMNS = {"age": (18, 90), "ward": ["icu", "other, or none", "surgery"], "visits": (0, 40)}
REQUEST = {"unit": "one row is one patient", "delta": 1e-5, "premise": CHOSEN_WITHOUT}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Compute each public plan once, and one `meaning` for all releases."""
    made, whole = {}, Request.plan
    meant = meaning.meaning(Gaussian(1.0))

    def plan(self, n=None):
        key = (self.method, n or self.rows, self.epsilon, self.delta, json.dumps(self.schema))
        if key not in made:
            made[key] = whole(self, n)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Request, "plan", plan)
        patch.setattr(files, "PROFILE", (1.0,))
        patch.setattr(meaning, "meaning", lambda profile: meant)
        patch.setattr(making, "guard", lambda: None)  # otherwise this process would stay guarded
        yield


def frame(n=N, seed=1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(float),
            "ward": rng.choice(COLUMNS["ward"], n),
            "visits": rng.poisson(4, n),
        }
    )
    score = 0.05 * (X["age"] - 55) + 0.2 * (X["visits"] - 4)
    return X, pd.Series(np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no"), name="ill")


def published(folder, target, y, method):
    X, _ = frame()
    columns = [
        rows.Unused("id"),
        rows.Category("ward", tuple(COLUMNS["ward"]), "icu"),
        rows.Number("visits", 0, 40),
        rows.Number("age", 18, 90, 50),
        target,
    ]
    schema = rows.Schema(columns, target.name)
    table = X.assign(id=range(N), **{target.name: y})[[c.name for c in columns]]
    table.to_csv(folder / "rows.csv", index=False)
    request = Request.parsed(
        {"name": "visits", "schema": schema.facts, "rows": N, "epsilon": 8, "method": method}
        | REQUEST
    )
    book = Book(folder / "book", Budget.of({"epsilon": 8, "delta": 1e-5}), request.unit)
    path = folder / "model.json"
    making.preview(request, book, folder / "rows.csv")
    path.write_bytes(making.make(request, book, folder / "rows.csv"))
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    target = rows.Label("ill", ("yes",), ("no",))
    return published(tmp_path_factory.mktemp("a"), target, frame()[1], "noise_aware_logistic")


@pytest.fixture(scope="module")
def regressor(tmp_path_factory):
    y = (30 + 0.5 * frame()[0]["age"]).round(2)
    target = rows.Number("cost", 0, 100)
    return published(tmp_path_factory.mktemp("b"), target, y, "noise_aware_log_cosh")


def by_hand(model, X):
    parts = [pd.Series(model.intercept_ * np.ones(len(X)), index=X.index)]
    for name, b in zip(model.coefficient_names_, np.ravel(model.coef_), strict=True):
        column, _, level = name.partition("=")
        parts.append(b * (X[column] == level if level else X[column]))
    return sum(parts).to_numpy()


def test_a_loaded_classifier_predicts_from_raw_frames(classifier):
    model, (X, _) = PrivateClassifier.load(classifier), frame(50, 2)
    actual = model.decision_function(X)
    assert actual == pytest.approx(by_hand(model, X), abs=1e-4)
    assert list(model.classes_) == ["no", "yes"]
    second = model.predict_proba(X)[:, 1]
    assert second == pytest.approx(1 / (1 + np.exp(-actual)))
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert (model.predict(X) == np.where(actual > 0, "yes", "no")).all()
    assert list(model.feature_names_in_) == ["ward", "visits", "age"]
    assert list(model.coefficient_names_) == [
        "ward=other, or none",
        "ward=surgery",
        "visits",
        "age",
    ]
    assert model.coef_.shape == (1, 4) and model.n_features_in_ == 3
    guarantee = model.guarantee_
    assert (guarantee["epsilon"], guarantee["delta"]) == (8, 1e-5)
    assert guarantee["adjacency"] == "replace-one" and guarantee["premises"]
    shuffled = X[["age", "ward", "visits"]].assign(more=1)
    assert (model.decision_function(shuffled) == actual).all()


def test_a_loaded_regressor_predicts_in_own_units(regressor):
    model, (X, _) = PrivateRegressor.load(regressor), frame(50, 2)
    assert model.predict(X) == pytest.approx(by_hand(model, X), abs=1e-3)
    assert model.coef_.shape == (4,) and model.score(X, 30 + 0.5 * X["age"]) > 0.5
    far = X.assign(age=1e9)
    assert model.predict(far) == pytest.approx(model.predict(X.assign(age=90)))


def test_values_are_read_as_a_release_reads_them(classifier):
    model, (X, _) = PrivateClassifier.load(classifier), frame(4, 3)
    X = X.astype({"age": object, "visits": object})
    base = model.decision_function(X.assign(age=50, visits=3))
    for age, visits in ((50.0, "3"), ("5e1", 3.0), (None, 3), (math.nan, " 3 "), (pd.NA, True * 3)):
        assert (model.decision_function(X.assign(age=age, visits=visits)) == base).all()
    for column, value in (
        ("visits", None),
        ("ward", "Icu"),
        ("visits", "3 (HIV+)"),
        ("age", math.inf),
    ):
        with pytest.raises(
            ValueError, match=r"row 0 has a cell that is no number or in no category"
        ):
            model.predict(X.assign(**{column: value}))
    with pytest.raises(ValueError, match="no column 'ward'"):
        model.predict(X[["age", "visits"]])
    with pytest.raises(ValueError, match="'age' twice"):
        model.predict(pd.concat([X, X["age"]], axis=1))
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X.to_numpy()[:, :2])
    array = X[list(model.feature_names_in_)].to_numpy()
    assert (model.predict(array) == model.predict(X)).all()


def test_what_is_no_model_is_refused(classifier, regressor, tmp_path):
    with pytest.raises(Refused, match="of two classes"):
        PrivateRegressor.load(classifier)
    with pytest.raises(Refused, match="of a number"):
        PrivateClassifier.load(regressor)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(Refused, match="is not the model"):
        PrivateClassifier.load(tmp_path / "x.json")
    with pytest.raises(NotFittedError):
        PrivateClassifier().predict(frame(3)[0])


BROKEN = {
    "no weights": lambda d: d.pop("weights"),
    "no guarantee": lambda d: d.pop("guarantee"),
    "no epsilon": lambda d: d["guarantee"].pop("epsilon"),
    "few weights": lambda d: d["weights"].pop(),
    "nested weights": lambda d: d.update(weights=[[1.0]] * 5),
    "ragged weights": lambda d: d["weights"].__setitem__(0, [1.0, 2.0]),
    "NaN": lambda d: d["weights"].__setitem__(0, math.nan),
    "infinite": lambda d: d["coefficients"].__setitem__(0, math.inf),
    "null": lambda d: d["coefficients"].__setitem__(0, None),
    "text": lambda d: d["weights"].__setitem__(0, "x"),
    "few estimates": lambda d: d["estimates"].pop(),
    "a vector's covariance": lambda d: d.update(covariance=[1.0] * 5),
    "other columns": lambda d: d["columns"].reverse(),
    "short table": lambda d: d["table"].pop(),
    "one class": lambda d: d["classes"].pop(),
    "no classes": lambda d: d.update(classes=None),
    "both": lambda d: d.update(target={"name": "ill", "low": 0, "high": 1}),
    "no schema": lambda d: d.update(schema=[]),
    "unknown kind": lambda d: d["schema"]["columns"][0].update(kind="x"),
    "an unknown field": lambda d: d["schema"]["columns"][0].update(more=1),
    "separator": lambda d: d["schema"].update(separator=5),
    "bounds": lambda d: d["schema"]["columns"][2].update(low=99),
    "format": lambda d: d.update(format="dp-release 0"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_model_is_refused_in_a_sentence(classifier, broken):
    document = json.loads(classifier.read_bytes())
    BROKEN[broken](document)
    with pytest.raises(Refused, match="is not the model of a release") as error:
        files.parse(json.dumps(document).encode())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"5", b'"x"', b"\xff", b"{", b"[" * 100_000])
def test_other_files_are_refused_in_a_sentence(content):
    with pytest.raises(Refused, match="is not the model of a release"):
        files.parse(content)


@pytest.mark.filterwarnings("error")
def test_errors_beyond_the_machine_s_numbers_are_not_said(tmp_path):
    """The slope's variance is below the smallest float, so its standard error and p-value would be 0."""
    target = rows.Number("y", 0, 1e-100)
    schema = rows.Schema([rows.Number("x", 0, 1e100), target], "y")
    x = np.random.default_rng(6).uniform(0, 1, N).tolist()
    data = b"".join(b"%r,%r\n" % (a * 1e100, a * 1e-100) for a in x)
    request = Request.parsed(
        {"name": "far", "schema": schema.facts, "rows": N, "epsilon": 8}
        | {"method": "noise_aware_log_cosh"}
        | REQUEST
    )
    book = Book(tmp_path / "book", Budget.of({"epsilon": 8, "delta": 1e-5}), request.unit)
    making.preview(request, book, data, header=False)
    document = files.parse(making.make(request, book, data, header=False)).document
    slope, constant = document["table"]
    assert slope["standard_error"] is slope["p_value"] is slope["estimate"] is None
    assert "state the columns' bounds in other units" in slope["says"]
    assert constant["standard_error"] > 0 and constant["says"] == ""
    assert document["covariance"] is None and document["coefficients"][0] > 0


def test_a_loaded_model_survives_a_pickle(classifier):
    model, (X, _) = PrivateClassifier.load(classifier), frame(9, 4)
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert not hasattr(clone(model), "model_")


def predict(model, new, out):
    command = [sys.executable, ROOT / "scripts/tools/predict.py"]
    command += ["--model", model, "--rows", new, "--out", out]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_predictions_of_a_file(classifier, regressor, tmp_path):
    X, _ = frame(30, 5)
    new = tmp_path / "new.csv"
    X[["visits", "ward", "age"]].assign(note="x").to_csv(new, index=False)
    with new.open("a") as handle:
        handle.write("3,hall,50,\n3,icu\n3,icu,,\n")
    done = predict(classifier, new, tmp_path / "p.csv")
    assert done.returncode == 0 and done.stdout.startswith("2 rows have no prediction")
    model = PrivateClassifier.load(classifier)
    results = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text())))
    assert [row["prediction"] for row in results[:30]] == model.predict(X).tolist()
    second = [float(row["probability"]) for row in results[:30]]
    assert second == pytest.approx(model.predict_proba(X)[:, 1], rel=1e-8)
    assert [row["prediction"] == "" for row in results[30:]] == [True, True, False]
    done = predict(regressor, new, tmp_path / "p.csv")
    assert done.returncode == 0
    results = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text())))
    numbers = [float(row["prediction"]) for row in results[:30]]
    assert numbers == pytest.approx(PrivateRegressor.load(regressor).predict(X), rel=1e-8)


def test_predictions_are_one_line_per_record(classifier, tmp_path):
    """Quoted cells hold line feeds. Columns that are not used have the same name, or none."""
    new = tmp_path / "new.csv"
    new.write_bytes(
        b'visits,"a\nnote",age,ward,x,x,,\n3,"a\nb",40,icu,1,2,,\n12,y,90,icu,1,2,,\n'
        b'-9,"a\n""b""\n",999,surgery,1,2,,\n4,z,40,"ic\nu",1,2,,\n4,z,"50",icu,1,2,,\n'
    )
    done = predict(classifier, new, tmp_path / "p.csv")
    assert done.returncode == 0 and done.stdout.startswith("1 rows have no prediction")
    results = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text())))
    X = pd.read_csv(new)[["age", "ward", "visits"]]
    expected = PrivateClassifier.load(classifier).predict_proba(X.drop(3))[:, 1]
    assert [row["prediction"] == "" for row in results] == [False, False, False, True, False]
    actual = [float(row["probability"]) for row in results if row["probability"]]
    assert actual == pytest.approx(expected, rel=1e-8)


def test_a_file_without_a_column_is_refused_in_a_sentence(classifier, tmp_path):
    (tmp_path / "new.csv").write_text("age,visits\n1,2\n")
    done = predict(classifier, tmp_path / "new.csv", tmp_path / "p.csv")
    assert done.returncode == 1 and not (tmp_path / "p.csv").exists()
    assert (
        "no column 'ward', which the model needs" in done.stderr and "Traceback" not in done.stderr
    )
    with pytest.raises(
        Refused, match="has 2 columns 'age', which the model needs: columns need diff"
    ):
        next(iter(using.of_file(files.load(classifier), b"age,visits,ward,age\n1,2,icu,3\n")))
    with pytest.raises(Refused, match="end in a carriage return alone"):
        next(iter(using.of_file(files.load(classifier), b"age,visits,ward,note\r1,2,icu,x\r")))
    done = predict(classifier, tmp_path / "none.csv", tmp_path / "p.csv")
    assert "none.csv: cannot be read" in done.stderr and "Traceback" not in done.stderr


def estimator(folder, **more):
    options = {"book": folder / "book", "budget": {"epsilon": 10, "delta": 1e-3}, "n_rows": N}
    options |= {"columns": COLUMNS, "target": ("no", "yes"), "unit": "a row", "delta": 1e-5}
    options |= {"epsilon": 4.0, "method": "gaussian_objective_perturbation"}
    options |= {"premise": CHOSEN_WITHOUT, "spend": True}
    return PrivateClassifier("first", **(options | more))


def fit(model, X, y):
    """Look at the rows, and fit."""
    model.preview(X, y)
    return model.fit(X, y)


def begun(folder):
    lines = (folder / "book/book.jsonl").read_text().splitlines()
    return [event["name"] for event in map(json.loads, lines) if event["event"] == "begin"]


def test_a_name_is_spent_once(tmp_path):
    X, y = frame()
    model = fit(estimator(tmp_path), X, y)
    assert model.score(X, y) > 0.55
    again = estimator(tmp_path).fit(X, y)
    assert (again.coef_ == model.coef_).all() and begun(tmp_path) == ["first"]
    loaded = PrivateClassifier.load(tmp_path / "book/first/model.json")
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    changed = X.copy()
    changed.loc[7, "age"] = 21 + (X.loc[7, "age"] == 21)
    for other, labels in (
        (changed, y),
        (X, y.where(y.index != 3, "no" if y[3] == "yes" else "yes")),
    ):
        with pytest.raises(Refused, match="'first' is done, and was made of other rows"):
            estimator(tmp_path).fit(other, labels)
    with pytest.raises(Refused, match="another release named 'first'"):
        estimator(tmp_path, epsilon=5.0).fit(X, y)
    with pytest.raises(Refused, match="the budget is"):
        estimator(tmp_path, epsilon=7.0).set_params(release="second").fit(X, y)
    assert begun(tmp_path) == ["first"]
    second = fit(estimator(tmp_path).set_params(release="second"), X, y)
    assert (second.coef_ != model.coef_).all() and begun(tmp_path) == ["first", "second"]


def test_fit_spends_only_on_rows_that_were_previewed_under_these_settings(tmp_path, capsys):
    X, y = frame()
    with pytest.raises(Refused, match="only after a preview of these very rows") as first:
        estimator(tmp_path).fit(X, y)
    estimator(tmp_path).preview(X, y)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("PRIVATE") and said[1].startswith("0 lines (0.0%) of 400 would count")
    assert said[2] == "age: 400 cells are read."
    other, order = X.assign(age=X["age"].where(X.index != 7, 30.5)), np.r_[1, 0, 2:N]
    for model, rows_of, labels in (
        (estimator(tmp_path), other, y),
        (estimator(tmp_path), X, y.where(y.index != 3, "no" if y[3] == "yes" else "yes")),
        (estimator(tmp_path), X.iloc[order], y.iloc[order]),
        (estimator(tmp_path, epsilon=3.0), X, y),
        (estimator(tmp_path, columns=COLUMNS | {"age": (18, 95)}), X, y),
        (estimator(tmp_path).set_params(release="second"), X, y),
    ):
        with pytest.raises(Refused) as error:
            model.fit(rows_of, labels)
        assert str(error.value) == str(first.value) == books.UNREAD
    assert begun(tmp_path) == []
    with pytest.raises(Refused, match="n_rows = 401 are stated"):
        estimator(tmp_path, n_rows=N + 1).preview(X, y)
    assert estimator(tmp_path).fit(X, y).guarantee_["epsilon"] == 4 and begun(tmp_path) == ["first"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("n", [N, N // 2])
def test_what_fits_again_and_again_spends_nothing(tmp_path, n):
    X, y = frame()
    one = estimator(tmp_path, n_rows=n)
    for search in (
        GridSearchCV(one, {"release": ["a", "b"]}, cv=2),
        BaggingClassifier(one, 2),
        CalibratedClassifierCV(one, cv=2),
        OneVsRestClassifier(one),
    ):
        with pytest.raises(ValueError, match=r"sklearn.\w+ fits on parts or copies of the rows"):
            search.fit(X, y)
    with pytest.raises(ValueError, match=r"sklearn.model_selection fits on parts"):
        cross_val_score(one, X, y, cv=2)
    with pytest.raises(Refused, match="n_rows = 401 are stated"):
        estimator(tmp_path, n_rows=N + 1).fit(X, y)
    assert not (tmp_path / "book").exists()


def test_a_new_name_is_spent_only_if_that_is_said(tmp_path):
    X, y = frame()
    cost = r"would spend \(epsilon 4, delta 1e-05\): of the budget \(epsilon 10, delta 0.001\), "
    with pytest.raises(Refused, match=cost + r"\(epsilon 0, delta 0\) is spent. State spend=True"):
        estimator(tmp_path, spend=False).fit(X, y)
    assert not (tmp_path / "book").exists()
    with pytest.raises(Refused, match="State spend=True"):
        estimator(tmp_path, spend="yes").fit(X, y)
    model = fit(estimator(tmp_path), X, y)
    again = estimator(tmp_path, spend=False).fit(X, y)
    assert (again.coef_ == model.coef_).all()
    with pytest.raises(Refused, match=cost + r"\(epsilon 4, delta 1e-05\) is spent"):
        estimator(tmp_path, spend=False).set_params(release="second").fit(X, y)
    assert begun(tmp_path) == ["first"]


def test_fit_guards_the_process_before_rows_are_read(tmp_path, monkeypatch):
    seen, hook = [], sys.excepthook
    monkeypatch.setattr(
        making, "guard", lambda: seen.append("guard") or setattr(sys, "excepthook", print)
    )
    monkeypatch.setattr(making, "make", lambda *_, **__: seen.append(sys.excepthook))
    with pytest.raises(TypeError):
        estimator(tmp_path).fit(*frame())
    assert seen == ["guard", hook]


@pytest.mark.parametrize(
    ("target", "labels", "match"),
    [
        (("no", "yes"), [False, True], "y is booleans .* and the target is stated as text"),
        (("no", "yes"), [0, 1], "y is numbers .* and the target is stated as text"),
        ((False, True), [0.0, 1.0], "y is numbers .* and the target is stated as booleans"),
        ((1, 2), [False, True], "y is booleans .* and the target is stated as numbers"),
    ],
)
def test_labels_of_another_kind_are_refused(tmp_path, target, labels, match):
    X, y = frame()
    with pytest.raises(Refused, match=match):
        estimator(tmp_path, target=target).fit(X, np.array(labels)[(y == "yes").astype(int)])
    assert not (tmp_path / "book").exists()


@pytest.mark.parametrize(
    ("target", "labels"),
    [((0, 1), [False, True]), ((False, True), [False, True]), ((0, 1), [0, 1])],
)
def test_labels_of_the_same_meaning_are_read(tmp_path, target, labels, monkeypatch):
    X, y = frame()
    seen = []
    monkeypatch.setattr(
        making, "make", lambda request, book, data, header: seen.append((request, data))
    )
    with pytest.raises(TypeError):
        estimator(tmp_path, target=target).fit(X, np.array(labels)[(y == "yes").astype(int)])
    ((request, data),) = seen
    schema = rows.from_facts(request.schema)
    actual = schema.rows(rows.split_lines(data, header=False), N)[1]
    assert (actual == np.where(y == "yes", 1, -1)).all()


def test_a_frame_is_the_file_that_it_came_from(tmp_path):
    X, y = frame()
    X.loc[3, "visits"], X.loc[5, "ward"], X.loc[6, "ward"] = np.nan, 'a "b"\nc', " icu "
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            making, "make", lambda request, book, data, header: seen.append((request, data))
        )
        with pytest.raises(TypeError):
            estimator(tmp_path).fit(X, y)
    ((request, data),) = seen
    schema = rows.from_facts(request.schema)
    V, labels = schema.rows(rows.split_lines(data, header=False), N)
    content = X.assign(ill=y).replace('a "b"\nc', 'a "b" c').to_csv(index=False).encode()
    other, again = schema.rows(rows.split_lines(content), N)
    assert (other == V).all() and (labels == again).all()
    assert not V[[3, 5]].any() and V[6].any() and (V.any(axis=1)).sum() == N - 2


@pytest.mark.parametrize(
    "missing", ["release", "book", "budget", "n_rows", "columns", "target", "delta", "premise"]
)
def test_nothing_is_taken_from_the_rows(tmp_path, missing):
    with pytest.raises(Refused, match=f"state {missing}: nothing of it is taken from the rows"):
        estimator(tmp_path).set_params(**{missing: None}).fit(*frame())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"columns": {"age": (18, 90)}}, "state bounds or categories of the column 'ward'"),
        ({"columns": {**COLUMNS, "age": 5}}, "'age' needs bounds"),
        ({"columns": {**COLUMNS, "age": (1, "a", 3)}}, "'age' needs bounds"),
        ({"target": ("no", "maybe", "yes")}, "two classes, the negative one first"),
    ],
)
def test_refuses_before_a_book_is_opened(tmp_path, change, match):
    with pytest.raises(Refused, match=match):
        estimator(tmp_path, **change).fit(*frame())
    assert not (tmp_path / "book").exists()


def test_columns_may_be_stated_as_in_a_schema(tmp_path):
    X, y = frame()
    ward = rows.Category("", tuple(COLUMNS["ward"]), "surgery", "icu")
    model = fit(estimator(tmp_path, columns=COLUMNS | {"ward": ward}), X, y)
    assert list(model.coefficient_names_) == ["age", "ward=icu", "ward=other, or none", "visits"]
    assert (
        model.predict(X.assign(ward=None)).tolist() == model.predict(X.assign(ward="icu")).tolist()
    )


class Fresh:
    """A `fit` with a new book for each call, since scikit-learn's checks cannot name a book."""

    def fit(self, X, y):
        shape = np.asarray(X).shape if not hasattr(X, "shape") else X.shape
        kind = type(self).__mro__[2]
        labels = (
            np.unique(np.asarray(y)).tolist()
            if kind is PrivateClassifier and y is not None
            else (-200, 200)
        )
        with tempfile.TemporaryDirectory() as folder:
            made = kind("one", book=f"{folder}/book", budget={"epsilon": 20, "delta": 1e-3})
            columns = (-10, 10)
            if isinstance(X, list):
                columns = {f"x{k}": columns for k in range(shape[1])}
            made.set_params(n_rows=shape[0], columns=columns, target=labels, unit="a row")
            made.set_params(epsilon=20.0, delta=1e-3, method="gaussian_objective_perturbation")
            made.set_params(premise=CHOSEN_WITHOUT, spend=True)
            return self._with(fit(made, X, y).model_)


class FreshClassifier(Fresh, PrivateClassifier):
    pass


class FreshRegressor(Fresh, PrivateRegressor):
    pass


TOTAL = "a message would tell what rows hold; such a cell makes its row one of zeros"
FAILS = {
    FreshClassifier: {
        "check_estimators_nan_inf": TOTAL,
        "check_classifiers_regression_target": TOTAL,
    },
    FreshRegressor: {
        "check_estimators_nan_inf": TOTAL,
        "check_supervised_y_no_nan": TOTAL,
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FAILS)
def test_checks_of_scikit_learn(kind, monkeypatch):
    """All fits share one key, since releases under different keys never agree."""
    monkeypatch.setattr(books, "new_key", lambda: bytes(32))
    actual = check_estimator(kind(), expected_failed_checks=FAILS[kind], on_fail=None)
    failed = {
        each["check_name"]: each["exception"] for each in actual if each["status"] == "failed"
    }
    assert not failed
    assert {each["check_name"] for each in actual if each["status"] == "xfail"} == set(FAILS[kind])
    skipped = {each["check_name"] for each in actual if each["status"] == "skipped"}
    assert skipped <= {"check_pipeline_consistency", "check_array_api_input"}
    assert sum(each["status"] == "passed" for each in actual) > 40

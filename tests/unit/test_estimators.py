"""How `fit` of the estimators reads values: each by itself, as `release.py` reads the text of a file."""

import datetime
import decimal
import enum
import fractions
import io
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from dp_privacy.errors import Refused
from dp_release import making, rows, using
from dp_release.estimators import PrivateClassifier, PrivateRegressor
from dp_release.request import CHOSEN_WITHOUT

SEX, ROW = ["F", "M"], 1 << 20


def estimator(kind=PrivateClassifier, n=8, **stated):
    options = {
        "book": "none",
        "budget": {"epsilon": 1, "delta": 1e-3},
        "n_rows": n,
        "unit": "a row",
    }
    options |= {"delta": 1e-5, "premise": CHOSEN_WITHOUT, "spend": True, "target": ["no", "yes"]}
    return kind("first", **(options | stated))


def read(X, y, columns, target=("no", "yes"), kind=PrivateClassifier):
    """The integer rows and labels that `fit` would release."""
    seen = []

    def make(request, book, data, header):
        seen.append((rows.from_facts(request.schema), data))
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "make", make)
        patch.setattr(making, "guard", lambda: None)
        with pytest.raises(InterruptedError):
            estimator(kind, len(y), columns=columns, target=target).fit(X, y)
    ((schema, data),) = seen
    lines = rows.split_lines(data, header=False)
    assert len(lines) == len(y)
    return schema.rows(lines, len(y))


def levels(values, categories, **how):
    """The category that each value is read as, or None."""
    V, _ = read(values, ["no"] * len(values), {"x0": categories}, **how)
    assert (V.any(axis=1) == (V[:, -1] > 0)).all()
    place = (
        [0] * len(V)
        if V.shape[1] == 1
        else np.where(V[:, :-1].any(axis=1), V[:, :-1].argmax(axis=1) + 1, 0)
    )
    return [categories[k] if row.any() else None for k, row in zip(place, V, strict=True)]


class Text(str):
    def __str__(self):
        raise RuntimeError


class Colour(enum.StrEnum):
    red = "red"


class Broken:
    def __str__(self):
        raise KeyError("no text")


class Loud(float):
    def __str__(self):
        return "red"


CATEGORIES = {
    "text": ["red", "None", "nan", "01", "1", "True", "a b"],
    "numbers": [1, 2, 3.5, 2**53 + 1, -1],
    "booleans": [False, True],
    "with an empty one": ["", "na", "red"],
}
TEXTS = (
    "red, red ,red\n,\tred,RED,None,nan,NaN,NaT,<NA>,, ,na,?,null,01,1,1.0,+1,1e0,True,true,TRUE"
)
TEXTS += ',False,a b,a\nb,a  b,no,yes,"red",",\r,a\r\n,\0,\ufeff1,\ud800,é'
ODD = [
    *(True, False, 0, 1, 2, -1, 3, 3.5, 1.0, -0.0, math.nan, math.inf, -math.inf),
    *(10**400, -(10**5000), 2**53, 2**53 + 1, 2.0**53),
    *(None, pd.NA, pd.NaT, np.datetime64("NaT"), np.float32("nan"), decimal.Decimal("NaN")),
    *(*TEXTS.split(","), "x,y", "x" * 70_000, "1" * 300),
    *(Text("red"), Text("None"), Colour.red, Broken(), Loud(1), np.str_("red")),
    *(b"red", b" red ", b"None", b"\xff", np.bytes_(b"red"), bytearray(b"red")),
    *(np.True_, np.int8(1), np.uint64(2**53 + 1), np.float16(1), np.longdouble("3.5"), np.array(1)),
    *(np.datetime64("2024-01-01"), np.datetime64(1, "ns"), np.timedelta64(1, "ns")),
    *(pd.Timestamp(1), pd.Timedelta(1), pd.Period("2024", "Y"), pd.Interval(0, 1)),
    *(datetime.date(2024, 1, 1), datetime.time(1), decimal.Decimal("1e999999")),
    *(fractions.Fraction(1, 2), 1j, [], [1], (), {}, {"a": 1}, object, np.array([1, 2])),
]
DOMAINS = [
    *CATEGORIES.values(),
    (0, 2),
    rows.Number("", 0, 10**20, 5),
    rows.Category("", ("None", "1"), "1", "1"),
]
TARGETS = [["no", "yes"], ["None", "nan"], [0, 1], [1, 2], [False, True], [2**53, 2**53 + 1]]
values = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)


def array_of(records):
    array = np.empty((len(records), len(records[0])), dtype=object)
    for i, record in enumerate(records):
        for k, cell in enumerate(record):
            array[i, k] = cell
    return array


FORMS = {
    "list": lambda records: records,
    "tuples": lambda records: tuple(map(tuple, records)),
    "arrays in a list": lambda records: list(array_of(records)),
    "array": array_of,
    "frame": lambda records: pd.DataFrame(array_of(records), columns=["x0", "x1"], dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(data=st.data())
def test_no_record_changes_how_others_are_read(form, data):
    domains = [data.draw(st.sampled_from(DOMAINS)) for _ in range(2)]
    columns, target = (
        dict(zip(["x0", "x1"], domains, strict=True)),
        data.draw(st.sampled_from(TARGETS)),
    )
    records = data.draw(st.lists(st.tuples(values, values).map(list), min_size=1, max_size=6))
    labels = data.draw(st.lists(values, min_size=len(records), max_size=len(records)))
    whole = read(FORMS[form](records), labels, columns, target)
    for i, record in enumerate(records):
        alone = read([record], [labels[i]], columns, target)
        assert (alone[0][0] == whole[0][i]).all() and alone[1][0] == whole[1][i]


@pytest.mark.parametrize("column", DOMAINS[:5])
def test_every_value_is_read_alone_as_among_all_others(column):
    X, y = [[value] for value in ODD], [0] * len(ODD)
    V, _ = read(X, y, {"x0": column}, [0, 1])
    for k, value in enumerate(ODD):
        assert (read([[value]], [0], {"x0": column}, [0, 1])[0] == V[k]).all()


@pytest.mark.parametrize("column", DOMAINS)
def test_new_records_are_read_like_those_of_a_fit(column):
    values = [[value] for value in ODD if not isinstance(value, str) or len(value) < 1000]
    V, _ = read(values, ["no"] * len(values), {"x0": column})
    (column,) = estimator(columns={"x0": column})._columns(["x0"])
    model = estimator()
    schema = rows.Schema([column, rows.Category("target", ("no", "yes"))], "target")
    model.model_, model.n_features_in_ = SimpleNamespace(schema=schema, reads=schema), 1
    for X in (values, array_of(values)):
        actual = using.design(model.model_, model._cells(X)) * ROW
        assert (np.nan_to_num(actual) == V).all()
        assert (np.isnan(actual).all(axis=1) == ~V.any(axis=1)).all()


@pytest.mark.parametrize("other", [2, math.nan, math.inf, "x", None, 10**400])
def test_one_record_of_a_list_leaves_booleans_and_numbers_alone(other):
    flags = [[True], [False], [True], [False]]
    assert levels([[other], *flags], [False, True])[1:] == [True, False, True, False]
    V, _ = read([[other], [1], [2**60], [2**60 + 1]], ["no"] * 4, {"x0": (2**60 - 1, 2**60 + 1)})
    assert V[1, 0] == -V[3, 0] < 0 == V[2, 0]


@pytest.mark.parametrize(
    "record",
    [
        [1, 2, 3],
        [],
        [1],
        5,
        None,
        "ab",
        "1",
        {"a": 1, "b": 2},
        [[1, 2]],
        np.zeros((2, 2)),
        np.int8(1),
    ],
)
def test_a_record_of_another_width_contributes_nothing(record):
    columns = {"x0": rows.Number("", 0, 2, 1), "x1": rows.Category("", ("a", "b"), "a", "b")}
    V, y = read([[1, "b"], record, [None, None]], ["yes", "yes", "no"], columns)
    assert not V[1].any() and y.tolist() == [1, 0, -1]
    assert (V[0] == V[2]).all() and V[
        0, -1
    ] > 0  # missing cells are replaced, of a record with cells


def test_a_list_needs_its_columns_by_name():
    with pytest.raises(Refused, match="state the columns of a list by name"):
        estimator(n=1, columns=(0, 1)).fit([[1.0]], ["no"])


@pytest.mark.parametrize(
    "word",
    ["None", "nan", "NaT", "<NA>", "NA", "null", "?"],
)
def test_text_for_nothing_may_be_a_category(word):
    missing = [None, math.nan, pd.NaT, pd.NA, np.datetime64("NaT"), np.float32("nan")]
    values = [[word], ["Mild"], *([value] for value in missing)]
    expected = [word, "Mild"] + [None] * len(missing)
    assert levels(values, ["Mild", word]) == expected
    assert levels(array_of(values), ["Mild", word]) == expected
    replaced = rows.Category("", ("Mild", word), "Mild", "Mild")
    V, _ = read(values, ["no"] * len(values), {"x0": replaced})
    assert V[0, 0] > 0 and not V[1:, 0].any() and V[:, 1].all()
    unlisted, _ = read(
        [[word], [None]], ["no"] * 2, {"x0": rows.Category("", ("a", "b"), "a", "b")}
    )
    assert (unlisted[0] == unlisted[1]).all() and unlisted[
        0, 0
    ] > 0  # missing, where it is no category
    _, y = read([[1]] * 3, [word, "x", None], {"x0": (0, 2)}, ["x", word])
    assert y.tolist() == [1, -1, 0]


def test_missing_objects_are_no_category_of_empty_text():
    assert levels([[""], [None], [math.nan], ["a"]], ["a", ""]) == ["", None, None, "a"]


NUMBERS = np.array([1, 2, 1])
INFERRED = {
    "integers": (NUMBERS, ["1", "2"], "numbers"),
    "floats": (NUMBERS.astype(float), ["1", "2"], "numbers"),
    "nullable": (pd.array(NUMBERS, dtype="Int64"), ["1", "2"], "numbers"),
    "a Categorical of numbers": (pd.Categorical(NUMBERS), ["1", "2"], "numbers"),
    "sparse": (pd.arrays.SparseArray(NUMBERS), ["1", "2"], "numbers"),
    "numbers beside text and numbers": (NUMBERS, rows.Category("", ("01", 2)), "numbers"),
    "booleans beside text": (NUMBERS == 1, ["False", "True"], "booleans"),
    "booleans beside bounds": (NUMBERS == 1, (0, 1), "booleans"),
    "nullable booleans": (pd.array(NUMBERS == 1, dtype="boolean"), (0, 1), "booleans"),
    "booleans beside numbers": (NUMBERS == 1, [0, 1, 2], "booleans"),
    "numbers beside booleans": (NUMBERS, [False, True], "numbers"),
    "dates": (pd.to_datetime(["2024-01-01"] * 3), (0, 9), "dates"),
    "dates with a zone": (pd.to_datetime(["2024-01-01"] * 3, utc=True), (0, 9), "dates"),
    "durations": (pd.to_timedelta(NUMBERS, "D"), (0, 9), "dates"),
    "dates beside text": (pd.to_datetime(["2024-01-01"] * 3), ["2024-01-01"], "dates"),
    "floats beside large integers": (NUMBERS.astype(float), [1, 2, 2**53 + 1], "numbers"),
    "complex": (NUMBERS * 1j, (0, 9), "of another kind"),
}


@pytest.mark.parametrize("case", INFERRED)
def test_types_that_may_be_inferred_are_refused(case):
    column, stated, kind = INFERRED[case]
    frame = pd.DataFrame({"other": ["a"] * 3, "ward": column})
    with pytest.raises(
        Refused, match=rf"'ward' is {kind} \(of the dtype .*\), and it is stated as"
    ) as error:
        estimator(n=3, columns={"other": ["a"], "ward": stated}).fit(frame, ["no"] * 3)
    assert "\n" not in str(error.value)
    if isinstance(column, np.ndarray) and kind != "of another kind":
        with pytest.raises(Refused, match=f"'x0' is {kind}"):
            estimator(n=3, columns={"x0": stated}).fit(column[:, None], ["no"] * 3)


def test_a_refusal_of_a_type_does_not_depend_on_cells():
    said = set()
    for values in ([1, 2, 3], [9, 9, 9], [0, -1, 10**9]):
        with pytest.raises(Refused) as error:
            estimator(n=3, columns={"g": ["1", "2"]}).fit(pd.DataFrame({"g": values}), ["no"] * 3)
        said.add(str(error.value))
    assert len(said) == 1


def test_a_preview_tells_of_types_that_a_reader_inferred_part_by_part(tmp_path, capsys):
    lines = ["ward,other", "x,a", *["01,a"] * 300_000, "02,b"]  # the last part has codes alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.read_csv(io.StringIO("\n".join(lines)))
    assert set(map(type, frame.ward)) == {str, int}
    few = pd.concat([frame.head(2), frame.tail(2)]).assign(other=["a", pd.NA, None, "b"])
    asked = {"n": 4, "columns": {"ward": ["01", "02"], "other": ["a", "b"]}}
    estimator(book=tmp_path / "book", **asked).preview(few, ["no"] * 4)
    assert "ward: 2 cells are numbers, true or false, beside 2 of text." in capsys.readouterr().out
    for ward in (few.ward.astype(str), few.ward.replace("x", 1).replace("01", math.nan)):
        estimator(book=tmp_path / "book", **asked).preview(few.assign(ward=ward), ["no"] * 4)
        assert "beside" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "stated"),
    [
        (NUMBERS, [1, 2, 3]),
        (NUMBERS.astype(float), [1, 2, 3]),
        (NUMBERS.astype("uint8"), [1.0, 2.0, 3.0]),
        (pd.array(NUMBERS, dtype="Int64"), [1, 2, 3]),
        (pd.Categorical(NUMBERS), [1, 2, 3]),
        (pd.Categorical([2**53, 2**53 + 1, 2**53]), [2**53, 2**53 + 1, 3]),
        (pd.Categorical(NUMBERS.astype(str)), ["1", "2"]),
        (pd.Categorical(NUMBERS.astype(str)), [1, 2, 3]),
        (NUMBERS.astype(str), [1, 2, 3]),
        (NUMBERS.astype("S1"), ["1", "2"]),
        (NUMBERS.astype(object), ["1", "2"]),
        (pd.array(["1", "2", "1"], dtype="string"), ["1", "2"]),
        (np.array(["01", "2.0", "1e0"]), [1, 2, 3]),
    ],
)
def test_types_that_mean_what_is_stated_are_read(column, stated):
    V, _ = read(pd.DataFrame({"g": column}), ["no"] * 3, {"g": stated})
    expected = np.zeros((3, len(stated)), bool)
    expected[:, -1], expected[1, 0] = True, True
    assert ((V != 0) == expected).all()


def test_booleans_are_read_as_a_file_s_text():
    for values in ([True, False], np.array([True, False]), ["TRUE", "false"], [np.True_, "False"]):
        frame = pd.DataFrame({"g": values})
        V, _ = read(frame, ["no"] * 2, {"g": [False, True]})
        assert (V[:, 0] > 0).tolist() == [True, False] and V[:, 1].all()


@pytest.mark.parametrize(
    ("stated", "match"),
    [
        ([1, math.nan, 2], "nan is no category"),
        ([1, math.inf, 2], "inf is no category"),
        (["a", None], "needs bounds"),
        ([1, "a", 2], "needs bounds"),
        ([1, True, 2], "needs bounds"),
        (rows.Category("", ("a", None)), "None is no category"),
        (rows.Category("", (1, True, 2)), "must be different"),
        ([1, 1.0, 2], "must be different"),
        (["a", "b "], "'b ' of 'x0' without line feeds and without spaces"),
        (rows.Category("", ("a\nb", "c")), "of 'x0' without line feeds"),
    ],
)
def test_what_can_be_no_category_is_refused(stated, match):
    with pytest.raises(Refused, match=match):
        estimator(n=1, columns={"x0": stated}).fit([["a"]], ["no"])


LABELS = {
    "integers": ([0, 1, 0], [0, 1], [-1, 1, -1]),
    "one is None": ([0, 1, None], [0, 1], [-1, 1, 0]),
    "one is text": ([0, 1, "x"], [0, 1], [-1, 1, 0]),
    "one is nan": ([0, 1, math.nan], [0, 1], [-1, 1, 0]),
    "one is NA": ([0, 1, pd.NA], [0, 1], [-1, 1, 0]),
    "one is a list": ([0, 1, [0, 1]], [0, 1], [-1, 1, 0]),
    "one is too long": ([0, 1, -(10**5000)], [0, 1], [-1, 1, 0]),
    "nested": ([[0], [1], [2]], [0, 1], [-1, 1, 0]),
    "nested differently": ([(0,), np.array([1]), pd.Series([2], index=[5])], [0, 1], [-1, 1, 0]),
    "text of numbers": (np.array(["0", "1.0", "x"]), [0, 1], [-1, 1, 0]),
    "objects": (np.array([0, 1, None], dtype=object), [0, 1], [-1, 1, 0]),
    "nullable": (pd.Series([0, 1, None], dtype="Int64"), [0, 1], [-1, 1, 0]),
    "a frame's column": (pd.DataFrame({"t": [0, 1, None]}), [0, 1], [-1, 1, 0]),
    "a Categorical": (pd.Series(["n", "y", None], dtype="category"), ["n", "y"], [-1, 1, 0]),
    "text of another case": (["no", "yes", "Yes"], ["no", "yes"], [-1, 1, 0]),
    "spaces": (["no ", " yes", " "], ["no", "yes"], [-1, 1, 0]),
    "booleans": (np.array([False, True, False]), [False, True], [-1, 1, -1]),
    "booleans beside 0 and 1": (np.array([False, True, False]), [0, 1], [-1, 1, -1]),
    "their text": (["False", "TRUE", "x"], [0, 1], [-1, 1, 0]),
    "their text beside booleans": (["False", "TRUE", "x"], [False, True], [-1, 1, 0]),
    "large": ([2**53, 2**53 + 1, 2.0**53], [2**53, 2**53 + 1], [-1, 1, -1]),
    "minus one": ([-1, 1, 0], [-1, 1], [-1, 1, 0]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("case", LABELS)
def test_labels_are_converted_one_by_one(case):
    y, target, expected = LABELS[case]
    V, actual = read([[1]] * 3, y, {"x0": (0, 2)}, target)
    assert actual.tolist() == expected
    assert (V.any(axis=1) == (actual != 0)).all()  # a row without a label contributes nothing


def test_numbers_to_learn_are_converted_one_by_one():
    y = [0, 1, 0.5, "0.25", None, "x", math.inf, True, 10**400, 7]
    _, labels = read([[1]] * 10, y, {"x0": (0, 2)}, (0, 1), PrivateRegressor)
    assert labels.tolist() == [-ROW, ROW, 0, -ROW // 2, 0, 0, 0, 0, 0, ROW]


def test_floats_beside_large_labels_are_refused():
    with pytest.raises(Refused, match=r"numbers beyond 2\^53, which floats do not tell apart"):
        estimator(n=1, columns={"x0": (0, 1)}, target=[1, 2**53 + 1]).fit([[1]], np.array([1.0]))


def scaled(step, **stated):
    columns = {f"x{k}": (0, 1) for k in range(2)}
    return make_pipeline(step, estimator(n=4, columns=columns, **stated))


LEARNING = {
    "scaler": lambda: scaled(StandardScaler()),
    "components": lambda: scaled(PCA()),
    "after a stateless one": lambda: make_pipeline(
        Normalizer(), *scaled(PCA()).named_steps.values()
    ),
    "around a pipeline": lambda: make_pipeline(StandardScaler(), scaled(Normalizer())),
    "in a pipeline": lambda: make_pipeline(Normalizer(), scaled(StandardScaler())),
    "a nested pipeline": lambda: scaled(make_pipeline(Normalizer(), StandardScaler())),
    "no estimator of scikit-learn": lambda: scaled(Plain()),
}


class Plain:
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


X, Y = np.array([[0.0, 0.5], [1.0, 0.0], [0.3, 0.4], [0.6, 0.1]]), ["no", "yes", "no", "yes"]


@pytest.mark.parametrize("case", LEARNING)
def test_a_step_that_learns_from_the_rows_is_refused(case):
    with pytest.raises(Refused, match=r"the step '\w+' \(\w+\) learns from the same rows") as error:
        LEARNING[case]().fit(X, Y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "steps",
    [
        [Normalizer()],
        [FrozenEstimator(StandardScaler().fit(X))],
        ["passthrough", None],
        [FunctionTransformer(np.abs)],
    ],
)
def test_steps_that_see_no_other_row_are_allowed(steps, monkeypatch):
    def make(*_, **__):
        raise InterruptedError

    monkeypatch.setattr(making, "make", make)
    monkeypatch.setattr(making, "guard", lambda: None)
    named = [(f"step{k}", step) for k, step in enumerate(steps)]
    last = estimator(n=4, columns={f"x{k}": (0, 1) for k in range(2)})
    with pytest.raises(InterruptedError):
        Pipeline([*named, ("last", last)]).fit(X, Y)


def test_a_transformer_of_the_labels_is_refused():
    inner = estimator(PrivateRegressor, 4, columns=(0, 1), target=(0, 1))
    with pytest.raises(
        Refused, match=r"'transformer' \(StandardScaler\) learns from the same rows"
    ):
        TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, X[:, 0])


def test_parts_of_the_rows_that_an_earlier_fit_chose_are_refused():
    inner = estimator(PrivateRegressor, 4, columns=(0, 1), target=(0, 1))
    with pytest.raises(Refused, match=r"sklearn.linear_model fits on parts or copies of the rows"):
        RANSACRegressor(inner, min_samples=4).fit(X, X[:, 0])
    with pytest.raises(Refused, match=r"sklearn.impute fits on parts or copies of the rows"):
        IterativeImputer(inner).fit(np.where(X == 0, np.nan, X))


def test_codes_and_decimal_commas_are_those_of_a_file(tmp_path):
    """A frame of text, as read with dtype=str, is read as the file would be, and new rows like it."""
    columns = {
        "income": rows.Number("", 0, 100, 40, (-9,)),
        "ward": rows.Category("", ("surgery", "icu"), "surgery", None, ("99",)),
    }
    target = rows.Label("", ("yes",), ("no",), codes=(9,))
    X = pd.DataFrame({"income": ["49,5", "-9,0", "-9", "49.5", ""], "ward": ["icu"] * 4 + ["99"]})
    y = ["yes", "no", "yes", "no", "yes"]
    model = estimator(PrivateClassifier, 5, columns=columns, target=target, decimal=",")
    request, _, data, _ = model._asked(X, y)
    schema = rows.from_facts(request.schema)
    V, labels = schema.rows(rows.split_lines(data, header=False), 5)
    assert labels.tolist() == [1, -1, 1, 0, 0]
    assert V[:3, 0].tolist() == [int(schema.each * (n - 50) / 50) for n in (49.5, 40, 40)]
    # Numbers that are no text have no mark, so they are what they are.
    columns["income"] = (0, 100)
    model = estimator(PrivateClassifier, 5, columns=columns, target=["no", "yes"], decimal=",")
    request, _, data, _ = model._asked(X.assign(income=[49.5, 1.25, 7, 8, 9]), y)
    V, labels = rows.from_facts(request.schema).rows(rows.split_lines(data, header=False), 5)
    assert labels.tolist() == [1, -1, 1, -1, 0]
    assert V[:2, 0].tolist() == [int(schema.each * (n - 50) / 50) for n in (49.5, 1.25)]
    with pytest.raises(Refused, match="decimal: must be a point or a comma"):
        estimator(PrivateClassifier, 5, columns=columns, decimal=";")._asked(X, y)
    # A number to learn can have codes, too.
    model = estimator(
        PrivateRegressor, 5, columns=columns, target=rows.Number("", 0, 10, codes=(99,))
    )
    request, _, data, _ = model._asked(X.assign(income=[1.0] * 5), [1, 99, 3, 20, 5])
    _, numbers = rows.from_facts(request.schema).rows(rows.split_lines(data, header=False), 5)
    assert numbers[1] == 0 and numbers[3] == rows.ONE and numbers[0] < numbers[2] < 0

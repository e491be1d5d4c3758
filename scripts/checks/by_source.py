"""Lists a source's claims, defects and printed numbers in one table, with verdicts and reasons."""

from checks.statements import NOT_TESTED, SECTIONS
from checks.verdicts import RESULT

KEY = ("experiment", "section", "id", "dataset", "method", "train_size", "epsilon", "quantity")
# stated: the printed value, or a check's threshold. low, high: the prediction interval. read_ours: our
# number under the reading that the verdict names.
# counted: as a result, among the other numbers, or elsewhere. power, replicates, more: see `published`.
NUMBERS = ("stated", "ours", "low", "high", "read_ours", "verdict")
COLUMNS = (*KEY, "where", "says", *NUMBERS, "because", "counted", "power", "replicates", "more")


def rows(source, decided):
    """Yield dictionaries of COLUMNS: claims and defects in source.yaml's order, then printed numbers.

    decided: experiment -> section -> rows of published.csv, claims.csv and defects.csv.
    """
    for section in SECTIONS:
        by_id = {
            row["id"]: (name, row)
            for name, sections in decided.items()
            for row in sections.get(section, ())
        }
        for entry in source.statements(section).values():
            nobody = {
                "verdict": NOT_TESTED,
                "decided_by": "no experiment decides it",
                "counted": RESULT,
            }
            name, row = by_id.get(entry.id, ("", nobody))
            yield _row(
                {"experiment": name, "section": section, "id": entry.id},
                {"where": entry.where, "says": entry.says},
                {"stated": row.get("threshold"), "ours": row.get("number")},
                {
                    "verdict": row["verdict"],
                    "because": row["decided_by"],
                    "counted": row["counted"],
                },
            )
    for name, sections in decided.items():
        for row in sections.get("published", ()):
            yield _row(
                {"experiment": name, "section": "published", "id": _id(row)},
                {key: row[key] for key in KEY[3:]},
                {"where": row["published_at"], "stated": row["published"], "ours": row["ours"]},
                {end: row[f"prediction_{end}"] for end in ("low", "high")},
                {"read_ours": row.get("read_ours")},
                {"verdict": row["verdict"], "because": row["reason"]},
                {key: row.get(key) for key in ("counted", "power", "replicates", "more")},
            )


def _id(row):
    return f"{row['comparison']} {row['published_at']}"


def key_of(row, section, experiment):
    if section == "published":
        return (experiment, section, _id(row), *(row[key] for key in KEY[3:]))
    return (experiment, section, row["id"], *[""] * len(KEY[3:]))


def _row(*parts):
    row = dict.fromkeys(COLUMNS, "")
    for part in parts:
        row |= {key: "" if value is None else value for key, value in part.items()}
    return row

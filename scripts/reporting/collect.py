"""Collects an experiment's part of the report. Missing files become gaps with a reason."""

import csv
import math
import tempfile
from functools import cached_property
from pathlib import Path

from checks import published as comparisons
from checks import statements, verdicts
from checks.results import Results
from dp import metrics
from plots import style
from reporting import packing
from study import facts as source_file
from study import paths
from study.canonical import epsilon, grid, number
from study.configuration import inputs, kinds
from study.configuration.experiment import data_name, data_path
from study.configuration.sources import experiment_files
from study.configuration.validation import read_yaml
from study.jobs.files import read_csv, read_json

METRICS = tuple(f"{name}_mean" for name in metrics.ALL if name != "error")
SHOWN = (
    *("dataset", "method", "train_size", "epsilon", "lambda", "error_mean", "error_low"),
    *("error_high", "error_sd", *METRICS),
    *("epsilon_claimed", "epsilon_proven", "delta_proven", "status"),
)
# Columns of results.csv that are empty for missing cells.
SUMMARISED = (
    *("folds", "error_sd", "error_sd_folds", "status"),
    *(name + end for name in metrics.ALL for end in metrics.ENDS),
)
NOT_PROVEN = "claimed, not proven"
LARGEST_DOWNLOAD = 2_000_000  # bytes; larger CSV files are not offered for download


class Gathered:
    """One experiment's part of the report.

    stand_ins: data set -> why numbers and claims on it are not decidable. outdated: files of verdicts that
    do not follow from this run's cells.
    """

    def __init__(self, experiment, stand_ins, outdated=()):
        self.experiment = experiment
        self.stand_ins = stand_ins
        self.outdated = outdated
        self.folder = Path(paths.results(experiment.name))

    @cached_property
    def gaps(self):
        """(cell, reason) of every cell without a run file."""
        return [
            (cell, _why(self.experiment.run_log(cell)))
            for cell in self.experiment.cells()
            if not Path(self.experiment.run_path(cell)).exists()
        ]

    @cached_property
    def cells(self):
        return self.experiment.cells()

    @property
    def status(self):
        if not self.cells:
            return self._status_without_cells()
        if len(self.gaps) == len(self.cells):
            return "not run"
        if self.gaps:
            return f"partial: {len(self.gaps)} of {len(self.cells)} cells are missing"
        if not self._at(paths.CELLS).exists():
            return "partial: not aggregated"
        return "complete"

    @property
    def there(self):
        """The number of cells with a result or, for an experiment without cells, of existing files."""
        if self.cells:
            return len(self.cells) - len(self.gaps)
        return sum(Path(path).exists() for path in self._files())

    def _status_without_cells(self):
        of = len(self._files())
        if self.there < of:
            missing = of - self.there
            return f"partial: {missing} of {of} files are missing" if self.there else "not run"
        return "complete"

    def _files(self):
        tables, figures = self.experiment.tables, self.experiment.figures
        return [
            *(self._at(paths.TABLE, name=name) for name in tables),
            *(self._at(paths.FIGURE, name=name) for name in figures),
        ]

    def _at(self, place, *suffix, **values):
        return Path(place(*suffix, experiment=self.experiment.folder, **values))

    @cached_property
    def frame(self):
        """The rows of results.csv or, for a partial run, rows of existing and missing cells."""
        import pandas as pd

        if not self.gaps and self._at(paths.CELLS).exists():
            return Results(self.experiment).frame
        if not self.cells:
            return pd.DataFrame(columns=[*SHOWN, *SUMMARISED])
        parts = [part for part in (self.some(self.cells), self._missing()) if len(part)]
        frame = pd.concat(parts, ignore_index=True)
        return frame.reindex(columns=[*dict.fromkeys([*frame.columns, *SUMMARISED])])

    def some(self, cells):
        """A row for each cell with a run file."""
        from study.jobs.summary import cells_frame

        return cells_frame(
            self.experiment, [c for c in cells if Path(self.experiment.run_path(c)).exists()]
        )

    def _missing(self):
        import pandas as pd

        return pd.DataFrame([cell._asdict() | {"status": why} for cell, why in self.gaps])

    def cell_table(self):
        if not self.cells:
            return [], []
        frame = self.frame
        empty = {name for name in METRICS if name in frame and frame[name].isna().all()}
        columns = [name for name in SHOWN if name in frame and name not in empty]
        shown = frame[columns].copy()
        for name in ("epsilon", "epsilon_claimed", "epsilon_proven"):
            if name in shown:
                shown[name] = [
                    v if isinstance(v, str) or math.isnan(v) else epsilon(v) for v in shown[name]
                ]
        if "epsilon_proven" in shown:
            claims = shown["epsilon_proven"].isna() & shown["epsilon_claimed"].notna()
            shown["epsilon_proven"] = shown["epsilon_proven"].mask(claims, NOT_PROVEN)
        return columns, shown.to_numpy(dtype=object).tolist()

    @property
    def smaller(self):
        """Settings smaller than in the experiment's file, in words (`study.configuration.sizes`)."""
        return self.experiment.smaller or []

    def verdicts(self, section):
        """The rows (dictionaries of strings) of published.csv, claims.csv or defects.csv.

        All rows are undecided if the experiment is incomplete, or the file is missing or outdated.
        """
        if not self.experiment.section(section):
            return []
        path = self._at(paths.VERDICTS, section=section)
        made = self.status == "complete" and path.exists()
        if made and str(path) not in self.outdated:
            return read_csv(path)
        source = source_file.read(self.experiment.source)
        if section == "published":
            listed = comparisons.listed(self.experiment, source, self.experiment.published)
            rows = [row for row, *_ in listed]
        else:
            rows = statements.listed(self.experiment, source, section)
        why = "what decides it is missing, or does not follow from this run's cells"
        said = {"verdict": verdicts.NOT_DECIDED, "reason": why, "decided_by": why}
        return [{key: number(value) for key, value in row.items()} | said for row in rows]

    def shown(self, section):
        """`verdicts`, marked as not judged if sizes are smaller than in the default run."""
        rows = self.verdicts(section)
        return [self._unjudged(section, row) for row in rows] if self.smaller else rows

    def _unjudged(self, section, row):
        undecided = (verdicts.NOT_TESTED, verdicts.NOT_RUN, verdicts.NOT_DECIDED)
        needed = section == "published" or any(
            kinds.CHECKS[check.kind].inputs.needs
            for check in self.experiment.section(section)[row["id"]].checks or ()
        )
        if row["verdict"] in undecided or not needed:
            return row
        file = Path(paths.VERDICTS(section=section, experiment=self.experiment.name)).name
        why = f"this run's sizes are smaller than the default run's; {file} has what the rule gives"
        shown = {"verdict": verdicts.NOT_JUDGED, "reason": why, "decided_by": why}
        blank = dict.fromkeys(("distance", "readings", "luck"), "")
        return row | {key: text for key, text in (shown | blank).items() if key in row}

    def figures(self):
        figures = []
        for name, spec in self.experiment.figures.items():
            kind = kinds.FIGURES[spec.kind]
            entry = {"name": name, "title": spec.title, "data": None, "why": ""}
            partial = kind.inputs is inputs.CELLS and self._gaps_of(spec)
            path = self._at(paths.FIGURE, name=name)
            if path.exists() and not partial:
                entry["data"] = packing.picture(path)
            elif kind.inputs is inputs.CELLS:
                entry["data"], entry["why"] = self._redraw(spec, kind)
            else:
                entry["why"] = _why(self._at(paths.FIGURE.log, name=name))
            entry["alt"] = self._alt(spec, kind)
            figures.append(entry)
        return figures

    def _gaps_of(self, spec):
        cells = set(self.experiment.entry_cells(spec))
        return [cell for cell, _ in self.gaps if cell in cells]

    def _redraw(self, spec, kind):
        """(base64 picture or None, why it is incomplete or missing), drawn from existing cells."""
        cells, missing = self.experiment.entry_cells(spec), self._gaps_of(spec)
        why = f"{len(missing)} of {len(cells)} cells are missing" if missing else "not made yet"
        if len(missing) == len(cells):
            return None, why
        try:
            figure = kind.function(self.experiment, spec, self.some(cells))
            with tempfile.TemporaryDirectory() as folder:
                picture = Path(folder, "figure.png")
                style.save(figure, picture)
                return packing.picture(picture), why
        except Exception as error:  # shown as a missing figure, with the reason
            return None, f"{why}; it cannot be drawn from the others ({error})"

    def _alt(self, spec, kind):
        what = (kind.function.__doc__ or "Figure.").partition("\n")[0].rstrip(".")
        text = f"{spec.title}. {what}."
        if kind.inputs is inputs.CELLS and "error_mean" in self.frame:
            text += self._ends(spec)
        return text

    def _ends(self, spec):
        cells = {tuple(cell) for cell in self.experiment.entry_cells(spec)}
        keys = self.frame[["dataset", "method", "train_size", "epsilon"]].itertuples(
            index=False, name=None
        )
        frame = self.frame.loc[[key in cells for key in keys]]
        name = spec.options.get("metric") or metrics.of(frame)
        metric, what = f"{name}_mean", style.TITLES[name].replace("$", "")
        frame = frame[frame[metric].notna()]
        looks = style.looks(self.experiment.methods)
        parts = []
        for (_, method), rows in frame.groupby(["dataset", "method"], sort=False):
            rows = rows.sort_values(["train_size", "epsilon"])
            first, last = rows[metric].iloc[0], rows[metric].iloc[-1]
            parts.append(
                f"{looks[method]['label']} {first:.3g}"
                + (f" to {last:.3g}" if len(rows) > 1 else "")
            )
        return (
            f" The {what} from the first to the last point: {'; '.join(parts[:12])}."
            if parts
            else ""
        )

    def tables(self):
        """[{name, title, columns, rows, why}] of tables and of analyses' CSVs."""
        tables = []
        sections = (
            (paths.TABLE, self.experiment.tables),
            (paths.ANALYSIS, self.experiment.analyses),
        )
        for place, entries in sections:
            for name, spec in entries.items():
                path = self._at(place, "csv", name=name)
                if place is paths.ANALYSIS and self.experiment.analysis_path(name) != str(path):
                    continue
                entry = {"name": name, "title": spec.title, "columns": [], "rows": [], "why": ""}
                if path.exists():
                    entry["columns"], entry["rows"] = read_table(path)
                else:
                    entry["why"] = _why(self._at(place.log, name=name, suffix="csv"))
                tables.append(entry)
        return tables

    def downloads(self):
        """[(file name, packed content)] of the experiment's CSVs, except run files."""
        parts = ("", *(place.part for place in (paths.TABLE, paths.TUNED, paths.ANALYSIS)))
        files = [path for part in parts for path in (self.folder / part).glob("*.csv")]
        return [
            (
                "-".join(path.relative_to(paths.results()).parts),
                packing.table(path),
            )
            for path in sorted(files)
            if path.stat().st_size <= LARGEST_DOWNLOAD
        ]

    def changes(self):
        """This run's settings that differ from the experiment's file, in words."""
        file = experiment_files().get(self.experiment.name)
        if not file:
            return ""
        own, changes = read_yaml(file), []
        for key in ("datasets", "folds", "simulations", "restarts"):
            ours = getattr(self.experiment, key)
            if key in own and own[key] != ours:
                changes.append(f"{key} {ours} instead of {own[key]}")
        for name, sweep in own.get("sweeps", {}).items():
            ours = self.experiment.sweeps.get(name)
            for key in ("train_sizes", "epsilons"):
                theirs = grid(sweep[key], whole=key == "train_sizes")
                if ours is None or getattr(ours, key) != theirs:
                    changes.append(f"{key.replace('_', ' ')} of the sweep {name}")
        return "; ".join(changes)

    def data(self):
        datasets = []
        for name in self.experiment.datasets:
            path = Path(data_path(name, "json"))
            meta = read_json(path) if path.exists() else {}
            datasets.append(
                {
                    "name": name,
                    "title": data_name(name),
                    "rows": meta.get("rows", "not prepared"),
                    "columns": len(meta.get("columns", ())) or "",
                    "bound": meta.get("bound", ""),
                    "kind": _kind_of_data(meta.get("source", {})),
                    "stand_in": self.stand_ins.get(name, ""),
                    "private_rows": ", ".join(meta.get("private_rows", ())),
                    "unit": _unit(meta.get("unit")),
                }
            )
        return datasets

    def provenance(self):
        path = self._at(paths.PROVENANCE)
        return read_json(path) if path.exists() else {}


def read_table(path):
    with Path(path).open(newline="", encoding="utf-8") as handle:
        columns, *rows = list(csv.reader(handle)) or [[]]
    return columns, rows


def _unit(unit):
    if not unit:
        return ""
    return f"{unit['row']}; {unit['group']} has up to {unit['rows']} rows"


def _kind_of_data(source):
    if "simulate" in source:
        count = source.get("data_replicates")
        return f"simulated {count} times independently" if count else "simulated"
    if "sklearn" in source:
        return "from scikit-learn"
    return "read from files" if source else ""


def _why(log):
    log = Path(log)
    if not log.exists():
        return "not run"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if "KeyboardInterrupt" in lines[-1:]:
        return "interrupted"
    return f"failed: {lines[-1].strip()[:300]}" if lines else "did not finish"

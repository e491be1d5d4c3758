"""What a run has found, in at most three sentences for the terminal."""

from pathlib import Path

from reporting import readings, record
from study import paths
from study.jobs.files import read_csv

MOST = 3
JUDGED = ("published", "claims", "defects")
REFUTED = ("refutes", "exceeds")  # first words of the ledger's verdicts


def findings(experiments, made):
    """The sentences.

    Parameters
    ----------
    experiments : list of Experiment
        Those that the run was asked for. Experiments at smaller sizes than their files state have none.
    made : set of str
        The files that the run was asked for.
    """
    small = [experiment.name for experiment in experiments if experiment.smaller]
    said = []
    if {paths.RECOMMENDATIONS(), paths.REPORT()} & made:
        said += recommended(small)
    said += [
        sentence
        for sentence in (
            verdicts([experiment for experiment in experiments if experiment.name not in small]),
            refuted() if {paths.LEDGER(), paths.REPORT()} & made else None,
        )
        if sentence
    ]
    return said[:MOST]


def recommended(small):
    """The report's first sentences: which method to use for each task."""
    from reporting import answers  # imports the report's pictures

    content = answers.answers(small)
    leads = content["leads"] if content else ()
    said = (f"{lead['task']}: {lead['method']}. {lead['text']}" for lead in leads)
    return [sentence.replace("\u00a0", " ") for sentence in said]


def files(experiments):
    """Paths of the verdicts on values, claims and defects, by section."""
    return [
        (section, Path(paths.VERDICTS(experiment=experiment.folder, section=section)))
        for experiment in experiments
        for section in JUDGED
        if experiment.section(section)
    ]


def verdicts(experiments):
    """How many values, claims and defects of sources hold; None if nothing was judged."""
    rows = []
    for section, path in files(experiments):
        if path.exists():
            rows += [row | {"section": section} for row in readings.once(read_csv(path))]
    return record.counts(rows) if rows else None


def refuted():
    """How many claimed epsilons the attacks refute; None without a ledger."""
    path = Path(paths.LEDGER())
    if not path.exists():
        return None
    rows = read_csv(path)
    broken = {row["mechanism"] for row in rows if row["verdict"].startswith(REFUTED)}
    return (
        f"Attacks refute the claimed epsilon of {len(broken)} of "
        f"{len({row['mechanism'] for row in rows})} mechanisms."
    )

"""Released programs: claimed, proven and audited epsilons side by side."""

from study.configuration.inputs import ANALYSIS
from study.configuration.kinds import table
from study.jobs.files import read_csv

SHOWN = (
    *("case", "repository", "commit", "committed", "read", "options", "epsilon_claimed", "delta"),
    *("epsilon_proven", "epsilon_audited", "differs", "repair", "epsilon_repaired"),
)


@table(ANALYSIS)
def released_code(experiment, spec, path):
    """One row per case and claimed epsilon. epsilon_repaired: the audited epsilon of the repaired form."""
    return SHOWN, [tuple(row[name] for name in SHOWN) for row in read_csv(path)]

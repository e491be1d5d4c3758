"""The runs of the cluster tests, and queries of their jobs."""

SBATCH = ("--workflow-profile", "workflow/profiles/sbatch", "--seconds-between-status-checks", "1")
ARRAY = (
    *("--workflow-profile", "workflow/profiles/slurm"),
    *("--slurm-init-seconds-before-status-checks", "3"),
)
# The overlay selects a few cells that are slow enough to interrupt.
OVERLAY = ("--configfile", "tests/cluster/cells.yaml")
RESULTS = "results/cm08/results.csv"
CELLS = (*OVERLAY, "--", RESULTS)
DATA = "results/data/cm08_separable.npz"


def on(cluster, project):
    project.environment = {"SLURM_CONF": str(cluster.conf)}
    return project


def jobs(cluster, project, *states):
    """Ids of this copy's jobs in the given states, or any state."""
    return [
        job
        for job, _, state, folder in cluster.queue()
        if folder == str(project.folder.resolve()) and (not states or state in states)
    ]


def submissions(cluster, project):
    """Submission id of each of this copy's jobs; the tasks of an array share one id."""
    folder = str(project.folder.resolve())
    return [submission for _, submission, _, place in cluster.queue() if place == folder]


def run_files(project):
    return list(project.folder.glob("results*/**/eps=*.csv"))

"""The runs of the cluster tests, and queries of their jobs."""

SBATCH = ("--workflow-profile", "workflow/profiles/sbatch", "--seconds-between-status-checks", "1")
PLUGIN = (
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
        for job, state, folder in cluster.queue()
        if folder == str(project.folder.resolve()) and (not states or state in states)
    ]


def run_files(project):
    return list(project.folder.glob("results*/**/eps=*.csv"))

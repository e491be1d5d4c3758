# What jobs ask a scheduler for: what was measured of a rule's largest job, with headroom that
# doubles with every retry. A change of these numbers reruns nothing.

import math

from study.data.origins import data_bytes

SNAKEMAKE_MB = 300  # on a computing node Snakemake itself runs beside the job
SHORTEST = 5  # minutes


def memory(peak_mb, copies=0):
    """mem_mb of a rule whose largest measured job took `peak_mb`, or on larger data, simulated or a
    table's, so many copies of the rows (a mapped file is one), and half as much again."""

    def asked(wildcards, attempt):
        data_mb = data_bytes(DATASETS[wildcards.dataset]) / 1e6 if copies else 0
        return math.ceil(SNAKEMAKE_MB + 1.5 * max(peak_mb, copies * data_mb)) * 2 ** (attempt - 1)

    return asked


def minutes(longest=1):
    """runtime of a rule whose longest measured job took at most so many minutes, twice."""
    return lambda wildcards, attempt: max(SHORTEST, 2 * longest) * 2 ** (attempt - 1)


def alone(wildcards):
    """threads of an analysis: every core of this machine for one that times something. On a cluster
    the scheduler keeps other work off the core that it gives."""
    exclusive = entry_of(wildcards, "analyses")[1].exclusive
    return workflow.cores if exclusive and workflow.local_exec else 1

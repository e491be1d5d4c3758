# Memory and time that jobs request: a rule's largest measured values, with headroom. Every retry
# doubles the request.

import math

from study.data.origins import data_bytes

SNAKEMAKE_MB = 300  # on a compute node, Snakemake itself runs beside the job
SHORTEST = 5  # minutes
FEW_CORES = 4  # a measurement of time reserves all cores up to this number


def memory(peak_mb, copies=0):
    """Return mem_mb of a rule: 1.5 times `peak_mb`, the memory of its largest measured job.

    copies: on larger data, the memory is 1.5 times this number of copies of the rows. A memory-mapped
    file counts as one copy.
    """

    def mem_mb(wildcards, attempt):
        data_mb = data_bytes(DATASETS[wildcards.dataset]) / 1e6 if copies else 0
        return math.ceil(SNAKEMAKE_MB + 1.5 * max(peak_mb, copies * data_mb)) * 2 ** (attempt - 1)

    return mem_mb


def minutes(longest=1):
    """runtime of a rule: twice the minutes of its longest measured job."""
    return lambda wildcards, attempt: max(SHORTEST, 2 * longest) * 2 ** (attempt - 1)


def alone(wildcards):
    """threads of an analysis: all cores of a small machine if the analysis measures time, else one."""
    exclusive = entry_of(wildcards, "analyses")[1].exclusive
    small = workflow.local_exec and workflow.cores <= FEW_CORES
    return workflow.cores if exclusive and small else 1

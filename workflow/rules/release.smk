# Makes a publishable model of a study's own rows, only on request:
# `snakemake --cores 1 -- releases/<name>/model.json`.


wildcard_constraints:
    release=names(release_files.files()),


rule release:
    input:
        "config/releases/{release}.yaml",
        # Your own rows are not an input, because Snakemake records times, sizes and digests of
        # inputs.
        rows=lambda wildcards: list(map(ancient, release_files.download(wildcards.release))),
    output:
        model="releases/{release}/model.json",
        card="releases/{release}/card.md",
        table="releases/{release}/table.csv",
        figure="releases/{release}/coefficients.png",
        tradeoff="releases/{release}/tradeoff.png",
    # The log is beside publishable files, so it contains one sentence if the job fails, and
    # never the cost.
    log:
        "releases/logs/{release}.log",
    # The job runs on this machine, which has the rows and the lock of the book of spent budget.
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(140),
        runtime=minutes(60),
    # `command` bypasses the shell function that forks jobs (`hooks.smk`), so that no long-lived
    # process holds the rows or the key.
    shell:
        'command python "$DP_HOME/scripts/tools/release.py" make {wildcards.release} --out releases/{wildcards.release} 2> {log}'

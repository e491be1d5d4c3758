# Makes a publishable model of a study's own rows, only on request:
# `snakemake --cores 1 -- releases/<name>/model.json`.


wildcard_constraints:
    release=names(release_files.files()),


rule release:
    input:
        "config/releases/{release}.yaml",
        # Only downloaded rows are an input, because Snakemake records times, sizes and digests of inputs.
        rows=lambda wildcards: list(map(ancient, release_files.download(wildcards.release))),
    output:
        model="releases/{release}/model.json",
        card="releases/{release}/card.md",
        table="releases/{release}/table.csv",
        figure="releases/{release}/coefficients.png",
    # The log is next to publishable files, so it has one sentence if the job fails, and never the cost.
    log:
        "releases/logs/{release}.log",
    # This machine has the rows and the book's lock.
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(140),
        runtime=minutes(60),
    # `command` bypasses the shell function that forks jobs (`hooks.smk`), so no long-lived process has the
    # rows or the key.
    shell:
        'command python "$DP_HOME/scripts/tools/release.py" make {wildcards.release} --out releases/{wildcards.release} 2> {log}'

# One model of own rows that may be published: `snakemake --cores 1 -- releases/<name>/model.json`. It is not
# part of the default run.


wildcard_constraints:
    release=names(release_files.files()),


rule release:
    input:
        "config/releases/{release}.yaml",
        # Only downloaded rows, because Snakemake records times, sizes and digests of inputs.
        rows=lambda wildcards: list(map(ancient, release_files.download(wildcards.release))),
    output:
        model="releases/{release}/model.json",
        card="releases/{release}/card.md",
        table="releases/{release}/table.csv",
        figure="releases/{release}/coefficients.png",
    # It is beside what may be published, so it has one sentence if the job fails, and never its cost.
    log:
        "releases/logs/{release}.log",
    # The rows, and the book's lock, are on this machine.
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(140),
        runtime=minutes(60),
    # `command` bypasses the shell function that forks jobs (`hooks.smk`): no process that lives on has rows or
    # key.
    shell:
        'command python "$DP_HOME/scripts/tools/release.py" make {wildcards.release} --out releases/{wildcards.release} 2> {log}'

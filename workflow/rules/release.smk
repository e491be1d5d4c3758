# One model of own rows that may be published: `snakemake --cores 1 -- releases/<name>/model.json`. It is no
# part of a run of everything.


wildcard_constraints:
    release=names(release_files.files()),


rule release:
    input:
        "config/releases/{release}.yaml",
        # Only a file that is downloaded: of inputs Snakemake records times, sizes and digests.
        rows=lambda wildcards: list(map(ancient, release_files.download(wildcards.release))),
    output:
        model="releases/{release}/model.json",
        card="releases/{release}/card.md",
        table="releases/{release}/table.csv",
        figure="releases/{release}/coefficients.png",
    # Beside what may be published. It has a sentence if the job fails, and never what the job took.
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
    # `command` passes the shell function that asks another process for a job (`hooks.smk`): rows and key
    # are in no process that lives on.
    shell:
        'command python "$DP_HOME/scripts/tools/release.py" make {wildcards.release} --out releases/{wildcards.release} 2> {log}'

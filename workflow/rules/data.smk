# Downloaded, read or simulated, then prepared: rows of bounded norm. Both are what `--cache` shares
# between checkouts.

if workflow.enable_cache and not os.environ.get("SNAKEMAKE_OUTPUT_CACHE"):
    sys.exit(
        "error: --cache needs a folder that it may use: export SNAKEMAKE_OUTPUT_CACHE=<folder>"
    )


rule download:
    output:
        # What was good stays until its successor is there.
        update(f"{paths.RAW}/{{file}}"),
    log:
        f"{paths.RAW}/logs/{{file}}.log",
    cache: "omit-software" if workflow.enable_cache else False
    retries: 2
    # Computing nodes often have no internet.
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(60),
        runtime=minutes(30),
    params:
        # Neither mirrors nor the addresses in config/files.yaml: whatever they are, the content that
        # its checksum fixes is the same.
        source=lambda wildcards: download_arguments(wildcards.file),
    shell:
        'python "$DP_HOME/scripts/download.py" --name {wildcards.file:q} {params.source} --out {output} 2> {log}'


rule prepare:
    input:
        lambda wildcards: list(origins.source_files(DATASETS[wildcards.dataset]["source"]).values()),
    output:
        npz=paths.DATA(),
        json=paths.DATA("json"),
    log:
        paths.DATA.log(),
    cache: workflow.enable_cache
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        # 1.3 copies measured, 2.3 where some rows are public, 4.5 of an expanded band
        mem_mb=memory(540, copies=3),
        runtime=minutes(),
    params:
        # The name is an axis of the seed, and a cache knows jobs by their parameters alone.
        name=lambda wildcards: wildcards.dataset,
        entry=lambda wildcards: json.dumps(DATASETS[wildcards.dataset]),
        # Not their date: rows that replace others may be older than what was prepared of those.
        content=own_content,
        seed=CONFIG["seed"],
        library=digest("prepare.py"),
    shell:
        'python "$DP_HOME/scripts/prepare.py" --dataset {params.name} --entry {params.entry:q}'
        " --seed {params.seed} --out-npz {output.npz} --out-json {output.json} 2> {log}"

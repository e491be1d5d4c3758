# Downloads, reads or simulates data, and prepares rows of bounded norm. With `--cache`,
# checkouts share downloads and prepared data.

if workflow.enable_cache and not os.environ.get("SNAKEMAKE_OUTPUT_CACHE"):
    sys.exit(
        "error: --cache needs a folder that it may use: export SNAKEMAKE_OUTPUT_CACHE=<folder>"
    )


rule download:
    output:
        # With `update`, an existing file is kept until the new one is complete.
        update(f"{paths.RAW}/{{file}}"),
    log:
        f"{paths.RAW}/logs/{{file}}.log",
    cache: "omit-software" if workflow.enable_cache else False
    retries: 2
    # Download on this machine, because compute nodes often have no internet access.
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(340),  # MNIST out of a pickle; other files take 60
        runtime=minutes(30),
    params:
        # Mirrors and addresses in config/files.yaml are not parameters, because the checksum
        # determines the content.
        source=lambda wildcards: download_arguments(wildcards.file),
    shell:
        'python "$DP_HOME/scripts/job.py" download --name {wildcards.file:q} {params.source} --out {output} 2> {log}'


rule prepare:
    input:
        lambda wildcards: list(origins.source_files(DATASETS[wildcards.dataset].source).values()),
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
        # Measured peaks, as multiples of the rows' size: 1.3; 2.3 if some rows are public; 4.5
        # for `expanded_band`.
        mem_mb=memory(540, copies=3),
        runtime=minutes(),
    params:
        # The name is a parameter, because random seeds derive from it, and a cache distinguishes
        # jobs only by parameters.
        name=lambda wildcards: wildcards.dataset,
        entry=lambda wildcards: json.dumps(DATASETS[wildcards.dataset].plain()),
        # A digest replaces modification times, because a file of new rows may be older than
        # the prepared data.
        content=own_content,
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/prepare.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" prepare --dataset {params.name} --entry {params.entry:q}'
        " --seed {params.seed} --out-npz {output.npz} --out-json {output.json} 2> {log}"

# Puts all cells of an experiment into one file, and beside it what differs from run to run.


rule aggregate:
    input:
        runs=lambda wildcards: map(
            experiment_of(wildcards).run_path, experiment_of(wildcards).cells()
        ),
        meta=lambda wildcards: expand(paths.DATA("json"), dataset=experiment_of(wildcards).datasets),
        chosen=lambda wildcards: searched_paths(experiment_of(wildcards), "json"),
    output:
        report(
            paths.CELLS(),
            caption="../report/results.rst",
            category="{experiment}",
            subcategory="tables",
            labels={"experiment": "{experiment}", "table": "all cells"},
        ),
    log:
        paths.CELLS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(95),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *("datasets", "methods", "families", "sweeps", "searches", "lambda_published"),
            "folds",
            *(("subsets", "reading", "published", "claims") if is_reading(wildcards) else ()),
        ),
        seed=CONFIG["seed"],
        library=lambda wildcards: digest(
            "aggregate.py", *mechanism_modules(experiment_of(wildcards))
        ),
    shell:
        'python "$DP_HOME/scripts/aggregate.py" --experiment {params.experiment:q} --seed {params.seed}'
        " --out {output} 2> {log}"


rule provenance:
    input:
        lambda wildcards: what_was_computed(experiment_of(wildcards)),
    output:
        timing=paths.TIMING(),
        json=paths.PROVENANCE(),
    log:
        paths.PROVENANCE.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(35),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(),
        seed=CONFIG["seed"],
        library=digest("provenance.py"),
    shell:
        'python "$DP_HOME/scripts/provenance.py" --experiment {params.experiment:q} --seed {params.seed}'
        " --out-timing {output.timing} --out-json {output.json} 2> {log}"

# Writes all cells of an experiment to one file, with their guarantees, and records the run's
# provenance.


# This rule reads no results of runs, so Snakemake can start it before they end.
rule guarantees:
    input:
        meta=lambda wildcards: expand(paths.DATA("json"), dataset=experiment_of(wildcards).datasets),
        chosen=lambda wildcards: lambda_files(experiment_of(wildcards)),
    output:
        paths.GUARANTEES(),
    log:
        paths.GUARANTEES.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(95),
        runtime=minutes(),
    params:
        experiment=cells_configuration,
        library=lambda wildcards: digest(
            "jobs/guarantees.py", *mechanism_modules(experiment_of(wildcards))
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" guarantees --experiment {params.experiment:q} --out {output} 2> {log}'


rule aggregate:
    input:
        runs=lambda wildcards: map(
            experiment_of(wildcards).run_path, cells_of(experiment_of(wildcards))
        ),
        guarantees=paths.GUARANTEES(),
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
        experiment=cells_configuration,
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/aggregate.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" aggregate --experiment {params.experiment:q}'
        " --guarantees {input.guarantees} --seed {params.seed} --out {output} 2> {log}"


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
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/provenance.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" provenance --experiment {params.experiment:q} --seed {params.seed}'
        " --out-timing {output.timing} --out-json {output.json} 2> {log}"

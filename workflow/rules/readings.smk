# Compares printed values with the main cells, and with the cells of each reading of a source.


rule readings:
    input:
        unpack(readings_inputs),
        compared=paths.COMPARED(),
    output:
        report(
            paths.READINGS(),
            caption="../report/readings.rst",
            category="{experiment}",
            subcategory="verdicts",
            labels={"experiment": "{experiment}", "table": "readings"},
        ),
    log:
        paths.READINGS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(165),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *COMPARED_BY, "published", "claims"
        ),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        library=lambda wildcards: digest(
            "jobs/readings.py",
            *sorted(
                {
                    module
                    for each in (experiment_of(wildcards), *readings_of(experiment_of(wildcards)))
                    for module in modules_of_checks(each, "claims")
                }
            ),
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" readings --experiment {params.experiment:q}'
        " --readings {input.configurations} --out {output} 2> {log}"

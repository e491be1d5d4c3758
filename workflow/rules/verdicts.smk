# Compares published values, claims and defects with what was computed.


rule compare:
    input:
        lambda wildcards: verdict_inputs.of_comparisons(experiment_of(wildcards)),
        runs=lambda wildcards: compared_runs(experiment_of(wildcards)),
        readings=lambda wildcards: readings_path(experiment_of(wildcards)),
    output:
        report(
            paths.VERDICTS(section="published"),
            caption="../report/published.rst",
            category="{experiment}",
            subcategory="verdicts",
            labels={"experiment": "{experiment}", "table": "published against ours"},
        ),
    log:
        paths.VERDICTS.log(section="published"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(90),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *(
                "source",
                "datasets",
                "methods",
                "searches",
                "sweeps",
                "analyses",
                "tables",
                "published",
                "draws",
            ),
        ),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        stand_ins=lambda wildcards: json.dumps(stand_ins(experiment_of(wildcards))),
        library=digest("compare.py"),
    shell:
        'python "$DP_HOME/scripts/compare.py" --experiment {params.experiment:q}'
        " --stand-ins {params.stand_ins:q} --readings {input.readings} --out {output} 2> {log}"


rule check:
    input:
        check_inputs,
        readings=lambda wildcards: (
            readings_path(experiment_of(wildcards)) if wildcards.section == "claims" else []
        ),
    output:
        report(
            paths.VERDICTS(),
            caption="../report/statements.rst",
            category="{experiment}",
            subcategory="verdicts",
            labels={"experiment": "{experiment}", "table": "{section}"},
        ),
    log:
        paths.VERDICTS.log(),
    wildcard_constraints:
        section="claims|defects",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(165),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *("source", "datasets", "methods", "searches", "sweeps", "analyses", "tables"),
            "published",
            wildcards.section,
        ),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        stand_ins=lambda wildcards: json.dumps(stand_ins(experiment_of(wildcards))),
        library=lambda wildcards: digest(
            "check.py",
            *verdict_inputs.modules_of_checks(experiment_of(wildcards), wildcards.section),
        ),
    shell:
        'python "$DP_HOME/scripts/check.py" --experiment {params.experiment:q} --section {wildcards.section}'
        " --stand-ins {params.stand_ins:q} --readings {input.readings} --out {output} 2> {log}"

# Compares published values with ours, and writes the verdicts on values, claims and defects.


rule compare:
    input:
        lambda wildcards: needs.files_of_comparisons(experiment_of(wildcards)),
        unpack(readings_inputs),
        prepared=lambda wildcards: needs.preparations(
            [experiment_of(wildcards), *readings_of(experiment_of(wildcards))]
        ),
    output:
        paths.COMPARED(),
    log:
        paths.COMPARED.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(165),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(*COMPARED_BY, "published"),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        stand_ins=lambda wildcards: json.dumps(stand_ins(experiment_of(wildcards))),
        library=lambda wildcards: digest("jobs/compare.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" compare --experiment {params.experiment:q}'
        " --readings {input.configurations} --stand-ins {params.stand_ins:q} --out {output} 2> {log}"


rule check:
    input:
        check_inputs,
        readings=lambda wildcards: (
            [] if wildcards.section == "defects" else readings_path(experiment_of(wildcards))
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
        section="published|claims|defects",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(165),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *COMPARED_BY, "published", wildcards.section
        ),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        stand_ins=lambda wildcards: json.dumps(stand_ins(experiment_of(wildcards))),
        library=lambda wildcards: digest(
            "jobs/check.py",
            *modules_of_checks(experiment_of(wildcards), wildcards.section),
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" check --experiment {params.experiment:q} --section {wildcards.section}'
        " --stand-ins {params.stand_ins:q} --readings {input.readings} --out {output} 2> {log}"


rule by_source:
    input:
        lambda wildcards: [
            path
            for experiment in of_source(wildcards.source)
            for path in verdict_paths(experiment)
        ],
    output:
        rows=report(
            paths.BY_SOURCE(),
            caption="../report/by_source.rst",
            category="Everything",
            labels={"page": "what {source} says"},
        ),
        tables=paths.BY_SOURCE("md"),
    log:
        paths.BY_SOURCE.log(),
    wildcard_constraints:
        source=names(sources),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(95),
        runtime=minutes(),
    params:
        facts=lambda wildcards: facts(of_source(wildcards.source)[0]),
        library=digest("jobs/by_source.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" by_source --source {wildcards.source} --verdicts {input}'
        " --out {output.rows} --out-tables {output.tables} 2> {log}"

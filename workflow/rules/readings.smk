# What a source leaves open: each reading's cells beside the main ones, confronted with what is printed.


def readings_of(experiment):
    """The experiments that read one's source otherwise, in its order."""
    return [
        reading
        for reading in EXPERIMENTS.values()
        if reading.values.get("reading", {}).get("of") == experiment.name
    ]


def readings_path(experiment):
    """What they give, [] without readings."""
    return paths.READINGS(experiment=experiment.name) if readings_of(experiment) else []


def compared_runs(experiment):
    """Draws of the cells that printed values stand beside."""
    cells = {c for name in needs.comparisons(experiment) for c in needs.items(experiment, name)}
    return [experiment.run_path(cell) for cell in experiment.cells() if cell in cells]


def readings_inputs(wildcards):
    experiment = experiment_of(wildcards)
    readings = readings_of(experiment)
    return {
        "results": [
            paths.CELLS(experiment=each.name) for each in (experiment, *readings) if each.cells()
        ],
        "runs": [
            each.run_path(cell)
            for each in (experiment, *readings)
            for cell in sorted(needs.cells(each.plain()).intersection(each.cells()))
        ],
        "configurations": [paths.CONFIGURATION(experiment=each.name) for each in readings],
    }


def readings_modules(wildcards):
    """Modules of the checks that decide the claims."""
    checks = checks_of(experiment_of(wildcards), "claims")
    return sorted({kinds.CHECKS[check["kind"]].module for check in checks})


rule readings:
    input:
        unpack(readings_inputs),
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
    benchmark:
        paths.READINGS.benchmark("readings")
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(165),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *("source", "datasets", "methods", "sweeps", "published", "claims"),
            *("folds", "data_replicates", "subsets"),
        ),
        facts=lambda wildcards: facts(experiment_of(wildcards)),
        stand_ins=lambda wildcards: json.dumps(stand_ins(experiment_of(wildcards))),
        library=lambda wildcards: digest("readings.py", *readings_modules(wildcards)),
    shell:
        'python "$DP_HOME/scripts/readings.py" --experiment {params.experiment:q}'
        " --readings {input.configurations} --stand-ins {params.stand_ins:q} --out {output} 2> {log}"

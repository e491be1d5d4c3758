# The report: one self-contained page about all experiments, and the cost of jobs.


rule configuration:
    output:
        paths.CONFIGURATION(),
    log:
        paths.CONFIGURATION.log(),
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(5),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(),
    shell:
        "printf '%s\\n' {params.experiment:q} 2> {log} > {output}.new && mv {output}.new {output}"


rule recommendations:
    input:
        results=[paths.CELLS(experiment=experiment.name) for experiment in recommending()],
        runs=[
            experiment.run_path(cell)
            for experiment in recommending()
            for cell in experiment.cells()
        ],
        meta=[
            data_path(name, "json")
            for experiment in recommending()
            for name in experiment.datasets
        ],
        chosen=[path for experiment in recommending() for path in lambda_files(experiment)],
        configuration=[
            paths.CONFIGURATION(experiment=experiment.name) for experiment in recommending()
        ],
    output:
        questions=report(
            paths.RECOMMENDATIONS(),
            caption="../report/recommendations.rst",
            category="Everything",
            labels={"page": "which method to use"},
        ),
        across=paths.ACROSS(),
        figure=paths.ACROSS("png"),
    log:
        paths.RECOMMENDATIONS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(140),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/recommend.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" recommend --configuration {input.configuration}'
        " --out {output.questions} --out-across {output.across} --out-figure {output.figure} 2> {log}"


# What to use, what holds and what leaks, for the first screens of README and page.
rule headlines:
    input:
        recommendations=recommendation_files(),
        ledger=[paths.LEDGER(), paths.AUDITED_CELLS()] if AUDITS.settings.enabled else [],
        verdicts=[paths.BY_SOURCE(source=name) for name in headline_sources()],
        meta=[data_path(name, "json") for name in headline_data()],
    output:
        keeps=paths.HEADLINE(picture="keeps"),
        holds=paths.HEADLINE(picture="holds"),
        leaks=paths.HEADLINE(picture="leaks"),
        numbers=paths.HEADLINES(),
    log:
        paths.HEADLINES.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(200),
        runtime=minutes(),
    params:
        sources=headline_sources(),
        shown=headline_data(),
        record=origins.content(record.files()),
        library=lambda wildcards: digest("jobs/headlines.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" headlines --sources {params.sources} --shown {params.shown}'
        " --out-keeps {output.keeps} --out-holds {output.holds} --out-leaks {output.leaks}"
        " --out {output.numbers} 2> {log}"


rule report:
    input:
        headlines=headline_files(),
        results=[path for name in LISTED for path in results_of(name)],
        recommendations=recommendation_files(),
        ledger=ledger_files() if AUDITS.settings.enabled else [],
        configuration=expand(paths.CONFIGURATION(), experiment=LISTED),
        forecasts=forecast_files(),
    output:
        html=report(
            paths.REPORT(),
            caption="../report/page.rst",
            category="Everything",
            labels={"page": "report"},
        ),
        costs=paths.COSTS(),
    log:
        paths.REPORT.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(350),
        runtime=minutes(5),
    params:
        stand_ins=all_stand_ins(),
        seed=CONFIG.seed,
        record=origins.content(record.files()),
        stale=lambda wildcards: stale_words(LISTED),
        of=CONFIGURATION,
        facts=[facts(EXPERIMENTS[name]) for name in LISTED if "source" in EXPERIMENTS[name].values],
        template=origins.content(sorted((paths.HOME / "workflow/report").glob("report.*"))),
        library=lambda wildcards: digest(
            "jobs/report.py",
            *sorted(
                {
                    kind.module
                    for section in (*kinds.SECTIONS.values(), kinds.CHECKS)
                    for kind in section.values()
                }
            ),
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" report --configuration {input.configuration} --seed {params.seed}'
        " --of={params.of:q} --stand-ins {params.stand_ins:q} {params.stale:q} --out-html {output.html} --out-costs {output.costs} 2> {log}"


# The releases that a study asks for, on simulated rows. The file of rows is no input (see `release`), but
# its columns must be known.
rule forecasts:
    output:
        paths.FORECASTS(),
    log:
        paths.FORECASTS.log(),
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(140),
        runtime=minutes(60),
    params:
        releases=lambda wildcards: origins.content(
            [
                *release_files.of_study().values(),
                *paths.configuration("datasets.yaml", "files.yaml"),
            ]
        ),
        there=lambda wildcards: [
            name for name in release_files.of_study() if release_files.has_rows(name)
        ],
        library=lambda wildcards: digest(
            "jobs/forecasts.py", MECHANISMS.module("gaussian_objective_perturbation")
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" forecasts --out {output} 2> {log}'


# `snakemake --cores 1 -- partial_report` makes a report of all existing results, including
# those of experiments that are not listed.
rule partial_report:
    input:
        forecast_files(),
    log:
        paths.REPORT.log("partial"),
    localrule: True
    run:
        report_what_there_is(filter(has_results, EXPERIMENTS))

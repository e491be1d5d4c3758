# The report: one self-contained page about all experiments, and what the jobs cost.


# What an experiment was asked for, every default filled in.
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


rule report:
    input:
        results=[path for name in CONFIG["experiments"] for path in results_of(name)],
        ledger=ledger_files() if AUDITS.values["enabled"] else [],
        configuration=expand(paths.CONFIGURATION(), experiment=CONFIG["experiments"]),
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
        mem_mb=memory(200),
        runtime=minutes(5),
    params:
        stand_ins=all_stand_ins(),
        seed=CONFIG["seed"],
        of=CONFIGURATION,
        facts=[
            facts(EXPERIMENTS[name])
            for name in CONFIG["experiments"]
            if "source" in EXPERIMENTS[name].values
        ],
        template=origins.content(sorted((paths.HOME / "workflow/report").glob("report.*"))),
        library=digest(
            "report.py",
            *sorted(
                {
                    kind.module
                    for section in (*kinds.SECTIONS.values(), kinds.CHECKS)
                    for kind in section.values()
                }
            ),
        ),
    shell:
        'python "$DP_HOME/scripts/report.py" --configuration {input.configuration} --seed {params.seed}'
        " --of={params.of:q} --stand-ins {params.stand_ins:q} --out-html {output.html} --out-costs {output.costs} 2> {log}"


# snakemake --cores 1 -- partial_report: the report of what there is, at any time, experiments that the
# configuration does not list included.
rule partial_report:
    log:
        paths.REPORT.log("partial"),
    localrule: True
    run:
        report_what_there_is(filter(has_results, EXPERIMENTS))

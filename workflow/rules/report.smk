# The report: one self-contained page about all experiments, and what the jobs cost.


# What an experiment was asked for, every default filled in.
rule configuration:
    output:
        "results/{experiment}/configuration.json",
    log:
        "results/{experiment}/logs/configuration.log",
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
        configuration=expand(
            "results/{experiment}/configuration.json", experiment=CONFIG["experiments"]
        ),
        sources=[
            path
            for name in CONFIG["experiments"]
            if "source" in EXPERIMENTS[name].values
            for path in sources.files(EXPERIMENTS[name].source)
        ],
        template=[
            "workflow/report/report.html.j2",
            "workflow/report/report.css",
            "workflow/report/report.js",
        ],
    output:
        html=report(
            "results/report.html",
            caption="../report/page.rst",
            category="Everything",
            labels={"page": "report"},
        ),
        costs="results/costs.csv",
    log:
        "results/logs/report.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(200),
        runtime=minutes(5),
    params:
        stand_ins=all_stand_ins(),
        seed=CONFIG["seed"],
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
        "python scripts/report.py --configuration {input.configuration} --seed {params.seed}"
        " --stand-ins {params.stand_ins:q} --out-html {output.html} --out-costs {output.costs} 2> {log}"


# snakemake --cores 1 -- partial_report: the report of what there is, at any time.
rule partial_report:
    log:
        "results/logs/partial_report.log",
    localrule: True
    run:
        report_what_there_is()

# Analyses, tables and figures. Every entry has its own inputs, so a single figure needs only
# its own jobs.


rule analyse:
    input:
        lambda wildcards: entry_inputs(wildcards, "analyses"),
    output:
        paths.ANALYSIS(),
    log:
        paths.ANALYSIS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: alone
    resources:
        mem_mb=memory(230),
        runtime=minutes(5),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).entry_json("analyses", wildcards.name),
        facts=lambda wildcards: entry_facts(wildcards, "analyses"),
        seed=CONFIG.seed,
        library=lambda wildcards: entry_library(wildcards, "analyses", "jobs/analyse.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" analyse --experiment {params.experiment:q} --name {wildcards.name}'
        " --seed {params.seed} --out {output} 2> {log}"


rule table:
    input:
        lambda wildcards: entry_inputs(wildcards, "tables"),
    output:
        report(
            paths.TABLE(),
            caption="../report/table.rst",
            category="{experiment}",
            subcategory="tables",
            labels={"experiment": "{experiment}", "table": "{name}"},
        ),
    log:
        paths.TABLE.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(95),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).entry_json("tables", wildcards.name),
        facts=lambda wildcards: entry_facts(wildcards, "tables"),
        library=lambda wildcards: entry_library(wildcards, "tables", "jobs/table.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" table --experiment {params.experiment:q} --name {wildcards.name}'
        " --out {output} 2> {log}"


rule figure:
    input:
        lambda wildcards: entry_inputs(wildcards, "figures"),
    output:
        report(
            paths.FIGURE(),
            caption="../report/figure.rst",
            category="{experiment}",
            subcategory="figures",
            labels={"experiment": "{experiment}", "figure": "{name}"},
        ),
        paths.FIGURE("pdf"),
    log:
        paths.FIGURE.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(300),
        runtime=minutes(),
    params:
        experiment=lambda wildcards: experiment_of(wildcards).entry_json("figures", wildcards.name),
        facts=lambda wildcards: entry_facts(wildcards, "figures"),
        library=lambda wildcards: entry_library(wildcards, "figures", "jobs/figure.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" figure --experiment {params.experiment:q} --name {wildcards.name}'
        " --out {output} 2> {log}"

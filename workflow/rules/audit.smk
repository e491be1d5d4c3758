# The privacy ledger: one attack per mechanism, pair and epsilon, exact losses beside them.


wildcard_constraints:
    mechanism=names(AUDITS.mechanisms),
    label=r"[A-Za-z0-9][A-Za-z0-9_]*",


# A target: `snakemake --cores 4 -- audit`.
rule audit:
    input:
        ledger_files(),


rule attack:
    output:
        "results/audit/runs/{mechanism}/{label}/eps={epsilon}.csv",
    log:
        "results/audit/logs/runs/{mechanism}/{label}/eps={epsilon}.log",
    benchmark:
        "results/audit/benchmarks/attack/{mechanism}/{label}/eps={epsilon}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        attack=lambda wildcards: json.dumps(
            AUDITS.attack(wildcards.mechanism, wildcards.label), sort_keys=True
        ),
        seed=CONFIG["seed"],
        library=lambda wildcards: digest("audit.py", *attack_modules(wildcards.mechanism)),
    shell:
        "python scripts/audit.py --mechanism {wildcards.mechanism} --label {wildcards.label}"
        " --attack {params.attack:q} --epsilon {wildcards.epsilon} --seed {params.seed}"
        " --out {output} 2> {log}"


rule attacks_of_mechanism:
    input:
        lambda wildcards: [attack.path for attack in AUDITS.attacks(wildcards.mechanism)],
    output:
        "results/audit/{mechanism}.csv",
    log:
        "results/audit/logs/{mechanism}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=200,
        runtime=5,
    params:
        library=digest("ledger.py"),
    shell:
        "python scripts/ledger.py {input} --out {output} 2> {log}"


rule ledger:
    input:
        [f"results/audit/{mechanism}.csv" for mechanism in AUDITS.mechanisms],
    output:
        "results/audit/ledger.csv",
    log:
        "results/audit/logs/ledger.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=200,
        runtime=5,
    params:
        library=digest("ledger.py"),
    shell:
        "python scripts/ledger.py {input} --out {output} 2> {log}"


rule exact_losses:
    output:
        "results/audit/exact.csv",
    log:
        "results/audit/logs/exact.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=json.dumps(AUDITS.values["exact"], sort_keys=True),
        library=digest("exact.py", *(MECHANISMS.module(name) for name in audits.EXACT)),
    shell:
        "python scripts/exact.py --settings {params.settings:q} --out {output} 2> {log}"


rule spending_of_experiment:
    input:
        meta=lambda wildcards: expand(
            "results/data/{dataset}.json", dataset=experiment_of(wildcards).datasets
        ),
        chosen=lambda wildcards: lambda_files(experiment_of(wildcards)),
    output:
        "results/audit/experiments/{experiment}.csv",
    log:
        "results/audit/logs/experiments/{experiment}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        experiment=lambda wildcards: experiment_of(wildcards).to_json(
            *("datasets", "methods", "sweeps", "searches", "lambda_published")
        ),
        library=lambda wildcards: digest(
            "spending.py", *mechanism_modules(experiment_of(wildcards))
        ),
    shell:
        "python scripts/spending.py --experiment {params.experiment:q} --out {output} 2> {log}"


rule spending:
    input:
        expand("results/audit/experiments/{experiment}.csv", experiment=CONFIG["experiments"]),
    output:
        "results/audit/spending.csv",
    log:
        "results/audit/logs/spending.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=200,
        runtime=5,
    params:
        library=digest("ledger.py"),
    shell:
        "python scripts/ledger.py {input} --out {output} 2> {log}"


rule audited_cells:
    input:
        ledger="results/audit/ledger.csv",
        results=[
            f"results/{name}/results.csv"
            for name in CONFIG["experiments"]
            if EXPERIMENTS[name].sweeps
        ],
    output:
        "results/audit/cells.csv",
    log:
        "results/audit/logs/cells.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        library=digest("audited_cells.py", *map(MECHANISMS.module, MECHANISMS)),
    shell:
        "python scripts/audited_cells.py {input.results} --ledger {input.ledger}"
        " --out {output} 2> {log}"


rule ledger_figure:
    input:
        "results/audit/ledger.csv",
    output:
        "results/audit/ledger.png",
        "results/audit/ledger.pdf",
    log:
        "results/audit/logs/figure.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        library=digest("ledger_figure.py"),
    shell:
        "python scripts/ledger_figure.py {input} --out {output} 2> {log}"

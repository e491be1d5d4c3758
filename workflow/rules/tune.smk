# Tunes lambda by cross-validation. The result is always shown, but used only for `lambda:
# tuned`.


rule tune:
    input:
        data=paths.DATA(),
        meta=paths.DATA("json"),
    output:
        json=paths.TUNED("json"),
        csv=paths.TUNED(),
    log:
        paths.TUNED.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(60, copies=2.3),
        runtime=minutes(),
    params:
        tune=lambda wildcards: experiment_of(wildcards).tune,
        lasso=lasso_argument,
        axis=lambda wildcards: experiment_of(wildcards).axis(),
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/tune.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" tune --data {input.data} --meta {input.meta} --experiment {params.axis}'
        " --dataset {wildcards.dataset} {params.lasso} --loss {params.tune.loss}"
        " --grid {params.tune.grid.low} {params.tune.grid.high} {params.tune.grid.values}"
        " --folds {params.tune.folds} --seed {params.seed}"
        " --out-json {output.json} --out-csv {output.csv} 2> {log}"


rule search:
    input:
        data=lambda wildcards: searched_data(wildcards, "npz"),
        meta=lambda wildcards: searched_data(wildcards, "json"),
    output:
        json=paths.SEARCH(),
        csv=paths.SEARCH("csv"),
    log:
        paths.SEARCH.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(480, copies=2.3),
        runtime=minutes(170),
    params:
        search=lambda wildcards: json.dumps(search_of(wildcards).plain()),
        split=search_split,
        mechanism=lambda wildcards: searched_method(wildcards).mechanism,
        options=lambda wildcards: json.dumps(searched_method(wildcards).options),
        delta=lambda wildcards: experiment_of(wildcards).delta(
            search_of(wildcards).method, int(wildcards.size)
        ),
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/search.py", *modules_of(searched_method(wildcards))),
    shell:
        'python "$DP_HOME/scripts/job.py" search --data {input.data} --meta {input.meta}'
        " --experiment {wildcards.experiment} --dataset {wildcards.dataset}"
        " --search {wildcards.search} --grid {params.search:q} --mechanism {params.mechanism}"
        " --options {params.options:q} {params.split} --train-size {wildcards.size}"
        " --epsilon {wildcards.epsilon} --delta {params.delta} --seed {params.seed}"
        " --out-json {output.json} --out-csv {output.csv} 2> {log}"

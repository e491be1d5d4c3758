# Regularisation by cross-validation, always computed and shown, used where `lambda: tuned` says so.


rule tune:
    input:
        data="results/data/{dataset}.npz",
        meta="results/data/{dataset}.json",
    output:
        json="results/{experiment}/tuned/{dataset}.json",
        csv="results/{experiment}/tuned/{dataset}.csv",
    log:
        "results/{experiment}/logs/tune/{dataset}.log",
    benchmark:
        "results/{experiment}/benchmarks/tune/{dataset}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        tune=lambda wildcards: experiment_of(wildcards).tune,
        private=private_tuning_argument,
        seed=CONFIG["seed"],
        library=lambda wildcards: digest("tune.py", *private_tuning_modules(wildcards)),
    shell:
        "python scripts/tune.py --data {input.data} --meta {input.meta} {params.private} --experiment {wildcards.experiment}"
        " --dataset {wildcards.dataset} --loss {params.tune[loss]}"
        " --grid {params.tune[grid][low]} {params.tune[grid][high]} {params.tune[grid][values]}"
        " --folds {params.tune[folds]} --seed {params.seed}"
        " --out-json {output.json} --out-csv {output.csv} 2> {log}"

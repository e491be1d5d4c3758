# Simulated or read, then prepared: rows of bounded norm.


rule prepare:
    input:
        lambda wildcards: DATASETS[wildcards.dataset]["source"].get("csv", []),
    output:
        npz="results/data/{dataset}.npz",
        json="results/data/{dataset}.json",
    log:
        "results/data/logs/{dataset}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        entry=lambda wildcards: json.dumps(DATASETS[wildcards.dataset]),
        seed=CONFIG["seed"],
        library=digest("prepare.py"),
    shell:
        "python scripts/prepare.py --dataset {wildcards.dataset} --entry {params.entry:q}"
        " --seed {params.seed} --out-npz {output.npz} --out-json {output.json} 2> {log}"

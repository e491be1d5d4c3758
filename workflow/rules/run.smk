# One job for each data set, method, training size and epsilon, and the non-private fits that
# these jobs share.


rule fit:
    input:
        data=paths.DATA(),
        meta=paths.DATA("json"),
        chosen=lambda wildcards: lambda_file(wildcards, fit_of(wildcards)),
    output:
        paths.FIT(),
    log:
        paths.FIT.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(255, copies=2.3),
        runtime=minutes(2),
    params:
        fit=lambda wildcards: fit_of(wildcards).fit.name,
        options=lambda wildcards: json.dumps(fit_of(wildcards).fit.options),
        lam=lambda wildcards: regularisation_of(wildcards, fit_of(wildcards)).text,
        split=lambda wildcards: experiment_of(wildcards).split(),
        seed=CONFIG.seed,
        library=lambda wildcards: digest("jobs/fit.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" fit --data {input.data} --meta {input.meta}'
        " --experiment {wildcards.experiment} --dataset {wildcards.dataset}"
        " {params.split} --train-size {wildcards.size} --seed {params.seed}"
        " --lam {params.lam} --fit {params.fit} --options {params.options:q} --out {output} 2> {log}"


rule run:
    input:
        unpack(chosen_settings),
        data=paths.DATA(),
        fit=cell_fit,
    output:
        paths.RUN(),
    log:
        paths.RUN.log(),
    # Jobs of other rules have priority, because further jobs wait for their results.
    priority: -1
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1010, copies=2.3),
        runtime=minutes(3),
    params:
        settings=cell_settings,
        library=lambda wildcards: digest("jobs/run.py", *modules_of(method_of(wildcards))),
    shell:
        'python "$DP_HOME/scripts/job.py" run --data {input.data}'
        " --fit {input.fit} --experiment {wildcards.experiment} --dataset {wildcards.dataset}"
        " --method {wildcards.method} --train-size {wildcards.size} --epsilon {wildcards.epsilon}"
        " {params.settings} --out {output} 2> {log}"

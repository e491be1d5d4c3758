# The privacy ledger: exact losses, and one attack per mechanism, pair and epsilon.


wildcard_constraints:
    mechanism=names(AUDITS.mechanisms),
    label=r"[A-Za-z0-9][A-Za-z0-9_]*",


# This rule is a target: `snakemake --cores 4 -- audit`.
rule audit:
    input:
        ledger_files(),


rule attack:
    output:
        paths.ATTACK(),
    log:
        paths.ATTACK.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(280),
        runtime=minutes(5),
    params:
        attack=lambda wildcards: json.dumps(
            AUDITS.attack(wildcards.mechanism, wildcards.label), sort_keys=True
        ),
        found_also_by=lambda wildcards: AUDITS.settings.found_also_by.get(wildcards.mechanism, ""),
        seed=CONFIG.seed,
        library=lambda wildcards: digest(
            "jobs/attack.py", *attack_modules(wildcards.mechanism, wildcards.label)
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" attack --mechanism {wildcards.mechanism} --label {wildcards.label}'
        " --attack {params.attack:q} --epsilon {wildcards.epsilon} --seed {params.seed}"
        " --found-also-by={params.found_also_by:q}"
        " --out {output} 2> {log}"


rule attacks_of_mechanism:
    input:
        lambda wildcards: [attack.path for attack in AUDITS.attacks(wildcards.mechanism)],
    output:
        paths.ATTACKS(),
    log:
        paths.ATTACKS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(20),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/concatenate.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" concatenate {input} --line --out {output} 2> {log}'


rule ledger:
    input:
        [paths.ATTACKS(mechanism=mechanism) for mechanism in AUDITS.mechanisms],
    output:
        report(
            paths.LEDGER(),
            caption="../report/ledger.rst",
            category="Everything",
            labels={"page": "privacy ledger"},
        ),
    log:
        paths.LEDGER.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(20),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/concatenate.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" concatenate {input} --out {output} 2> {log}'


# This rule fails if an attack or a replay refutes a claim of a study's own mechanism.
rule claims_held:
    input:
        paths.LEDGER(),
        replays=paths.REPLAY(),
        own=[paths.ATTACKS(mechanism=mechanism) for mechanism in own_mechanisms()],
    output:
        paths.HELD(),
    log:
        paths.HELD.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(20),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/concatenate.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" concatenate {input.own} --strict --replays {input.replays}'
        " --out {output} 2> {log}"


# Measures within seconds how far one record moves the quantities to which private mechanisms add
# noise. This rule is a target: `snakemake --cores 1 -- replay`.
rule replay:
    output:
        paths.REPLAY(),
    log:
        paths.REPLAY.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(190),
        runtime=minutes(),
    params:
        attacks=json.dumps(replayed(), sort_keys=True),
        mechanisms=[name for name in AUDITS.mechanisms if name in MECHANISMS],
        library=lambda wildcards: digest("jobs/replay.py", *replayed_modules()),
    shell:
        'python "$DP_HOME/scripts/job.py" replay --attacks {params.attacks:q} --mechanisms {params.mechanisms}'
        " --out {output} 2> {log}"


rule exact_losses:
    output:
        paths.EXACT(),
    log:
        paths.EXACT.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(170),
        runtime=minutes(),
    params:
        settings=json.dumps(AUDITS.settings.exact.plain(), sort_keys=True),
        library=lambda wildcards: digest(
            "jobs/exact_losses.py", *(MECHANISMS.module(name) for name in audits.EXACT)
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" exact_losses --settings {params.settings:q} --out {output} 2> {log}'


rule spending:
    input:
        of_listed(paths.GUARANTEES),
    output:
        paths.SPENDING(),
    log:
        paths.SPENDING.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(20),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/spending.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" spending {input} --out {output} 2> {log}'


rule audited_cells:
    input:
        ledger=paths.LEDGER(),
        results=of_listed(paths.CELLS),
    output:
        paths.AUDITED_CELLS(),
    log:
        paths.AUDITED_CELLS.log(),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(95),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest(
            "jobs/audited_cells.py", *map(MECHANISMS.module, MECHANISMS)
        ),
    shell:
        'python "$DP_HOME/scripts/job.py" audited_cells {input.results} --ledger {input.ledger}'
        " --out {output} 2> {log}"


rule ledger_figure:
    input:
        paths.LEDGER(),
    output:
        ledger=[
            report(
                paths.LEDGER("png"),
                caption="../report/ledger.rst",
                category="Everything",
                labels={"page": "privacy ledger, as a figure"},
            ),
            paths.LEDGER("pdf"),
        ],
        profiles=[paths.PROFILES(), paths.PROFILES("pdf")],
    log:
        paths.LEDGER.log("png"),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(210),
        runtime=minutes(),
    params:
        library=lambda wildcards: digest("jobs/ledger_figure.py"),
    shell:
        'python "$DP_HOME/scripts/job.py" ledger_figure {input} --out {output.ledger}'
        " --profiles {output.profiles} 2> {log}"

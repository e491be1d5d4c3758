# The report: one self-contained page about all experiments, and what the jobs cost.

import subprocess


def all_stand_ins():
    return json.dumps(
        {
            dataset: why
            for name in CONFIG["experiments"]
            for dataset, why in stand_ins(EXPERIMENTS[name]).items()
        }
    )


rule report:
    input:
        results=[path for name in CONFIG["experiments"] for path in results_of(name)],
        configuration=expand(
            "results/{experiment}/provenance.json", experiment=CONFIG["experiments"]
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
        mem_mb=1000,
        runtime=10,
    params:
        stand_ins=all_stand_ins(),
        seed=CONFIG["seed"],
        library=digest(
            "report.py",
            *sorted(
                {kind.module for section in kinds.SECTIONS.values() for kind in section.values()}
            ),
        ),
    shell:
        "python scripts/report.py --configuration {input.configuration} --seed {params.seed}"
        " --stand-ins {params.stand_ins:q} --out-html {output.html} --out-costs {output.costs} 2> {log}"


def report_what_there_is():
    """results/report.html of the results that there are, with the gaps shown: after a failure, too."""
    folder = Path("results/logs/configuration")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in CONFIG["experiments"]:
        complete = Path(f"results/{name}/provenance.json")
        path = folder / f"{name}.json"
        record = json.loads(complete.read_text()) if complete.exists() else {}
        record |= {"experiment": name, "configuration": EXPERIMENTS[name].values}
        path.write_text(json.dumps(record))
        paths.append(str(path))
    words = ["--configuration", *paths, "--seed", str(CONFIG["seed"])]
    words += ["--stand-ins", all_stand_ins(), "--out-html", "results/report.html"]
    words += ["--out-costs", "results/costs.csv"]
    done = subprocess.run([sys.executable, "scripts/report.py", *words], check=False)
    if done.returncode == 0:
        print("results/report.html: what there is, with its gaps", file=sys.stderr)


# snakemake --cores 1 -- partial_report: the report of what there is, at any time.
rule partial_report:
    log:
        "results/logs/partial_report.log",
    localrule: True
    run:
        report_what_there_is()

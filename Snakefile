from snakemake.utils import min_version

min_version("9.9")


report: "workflow/report/workflow.rst"


# A study's file may be partial or missing: see `study.configuration.config.load`.
if os.path.exists("config/config.yaml"):

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/readings.smk"
include: "workflow/rules/verdicts.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/release.smk"
include: "workflow/rules/hooks.smk"


rule all:
    # If another workflow uses this one as a module, that workflow has its own default target.
    default_target: not MODULE
    input:
        [path for name in LISTED for path in results_of(name)],
        by_source(),
        ledger_files() if AUDITS.settings.enabled else [],
        recommendation_files(),
        paths.REPORT(),


# The name of every experiment is a target: `snakemake --cores 4 -- cm08`.
for name in EXPERIMENTS:

    rule:
        name:
            name
        input:
            results_of(name),


check_asked()


onstart:
    begin(workflow.dag)


onsuccess:
    end(workflow.dag, True, log)


onerror:
    end(workflow.dag, False, log)

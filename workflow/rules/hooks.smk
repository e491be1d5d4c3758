# Hooks before the first and after the last job.

import contextlib
import heapq
import logging
import select
import signal
import socket
import subprocess
import tempfile
from operator import attrgetter

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake.shell import shell

from snakemake.exceptions import LockException, WorkflowError

from reporting import findings, forecast, so_far, terminal
from study.jobs import alive, fork
from study.jobs.files import read_csv

MOST_FOLDERS = 5  # whose files are named at the end

# When a signal arrives, Python writes its number into the second socket at once.
ARRIVED, SIGNALS = socket.socketpair()


def check_asked():
    """Refuse unknown targets, and profiles that Snakemake would ignore; suggest the nearest name."""
    arguments = GIVEN
    if arguments is None or not workflow.is_main_process:
        return
    runs = live_runs()
    if arguments.unlock and runs:
        sys.exit(f"error: {locked_by(runs)}")
    said = [asked.no_profile(arguments.workflow_profile, arguments.directory)]
    said.append(asked.no_scheduler(arguments))
    said += [
        f"{name!r} after --cache is a target: put -- before it"
        for name in arguments.cache or ()
        if name in EXPERIMENTS
    ]
    rules = {rule.name: rule for rule in workflow.rules}
    unknown = [target for target in arguments.targets if target not in rules]
    files = final_files() if unknown else {}
    for target in unknown:
        made = any(rule.is_producer(target) for rule in workflow.rules)
        main = [name for name in rules if "__" not in name and not rules[name].has_wildcards()]
        said.append(asked.no_target(target, main, files, made))
    if any(said):
        sys.exit(f"error: {next(filter(None, said))}")
    say_finished(arguments.targets)


def final_files():
    """Folder -> all files that the configuration names in it."""
    places = {paths.FIGURE: ("png", "pdf"), paths.TABLE: ("csv",), paths.ANALYSIS: ("csv", "npz")}
    files = {}
    for experiment in EXPERIMENTS.values():
        folder = experiment.folder
        for place, suffixes in places.items():
            section = experiment.section(place.part)
            files[paths.results(folder, place.part)] = [
                place(suffix, experiment=folder, name=entry)
                for entry in section
                for suffix in suffixes
            ]
        files[paths.results(folder, "runs")] = [experiment.run_path(c) for c in experiment.cells()]
    everywhere = [path for name in LISTED for path in results_of(name)]
    own = [paths.REPORT(), *recommendation_files(), *ledger_files(), *everywhere]
    known = {path for folder_files in files.values() for path in folder_files}
    files[""] = [path for path in own if path not in known]
    return files


def live_runs():
    """Other Snakemake processes in this folder on this machine, in words."""
    return [f"process {number} of this machine" for number in alive.here(Path.cwd())]


def locked_by(runs):
    return (
        f"another run of this folder is alive ({', '.join(runs)}): wait for its end, or stop it with "
        f"Ctrl-C where it was started"
    )


def explain_lock(error):
    """Replace Snakemake's advice to remove the lock, since two runs could then write the same files."""
    runs = live_runs() or alive.elsewhere(lambda text: print(text, file=sys.stderr))
    text = (
        locked_by(runs)
        if runs
        else "a run of this folder was killed, and its lock is still there: `python "
        f"{paths.HOME / 'scripts/tools/recover.py'}` with the arguments of that run removes what it "
        "left, and resumes it"
    )
    WorkflowError.__init__(error, text)


LockException.__init__ = explain_lock


def begin(dag):
    """Before the first job, refuse to overwrite another configuration's results."""
    check_folders()
    jobs = list(dag.needrun_jobs(exclude_finished=False))
    writes = any(Path(path).is_relative_to(paths.results()) for job in jobs for path in job.output)
    if writes and (left := records.left_behind(CONFIGURATION)):
        print(left, file=sys.stderr)
    said = [records.refusal(CONFIGURATION)] if writes else []
    said += map(refused_release, (job for job in jobs if job.rule.name == "release"))
    if any(said):
        sys.exit(f"error: {next(filter(None, said))}")
    try:
        if writes:
            records.keep(CONFIGURATION)
            keep_outdated(dag)
    except OSError as error:
        sys.exit(f"error: {paths.results()}/ cannot be written: {error}")
    alive.begin()
    schedule_quickly()
    go_on_without_files(jobs)
    if not only_releases(jobs):
        start_quickly()
    logger.addFilter(shown)
    if TERMINAL:
        TERMINAL.begin(
            expected(jobs), Quietness.PROGRESS not in (workflow.output_settings.quiet or ())
        )
    if not MODULE and any(paths.REPORT() in job.output for job in jobs):
        first_things_first(dag, jobs)
        take_first_things_first()
        workflow.dp_page = page_so_far(dag, jobs)
        workflow.dp_page.begin()
    SIGNALS.setblocking(False)
    signal.set_wakeup_fd(SIGNALS.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, interrupt)


def first_things_first(dag, jobs):
    """Order ready jobs as the page shows their results.

    First is what the first experiment needs, then the first attack on each mechanism. Cells follow in the
    order of experiments.
    """
    shown = {name: place for place, name in enumerate(LISTED)}
    attacks = {attack.mechanism: attack.path for attack in reversed(AUDITS.attacks())}
    early = [job for job in jobs if folder_of(job) == LISTED[0]] if LISTED else []
    early = set(dag.bfs(dag.dependencies, *early))
    for job in jobs:
        if dag.priority(job) > job.rule.priority:
            continue  # asked for by --prioritize
        if job in early:
            dag._priority[job] = 2
        elif set(job.output).intersection(attacks.values()):
            dag._priority[job] = 1
        elif job.rule.name == "run":
            place = shown.get(str(folder_of(job)).partition("/")[0], len(shown))
            dag._priority[job] = job.rule.priority - place


def page_so_far(dag, jobs):
    made = [(job, [str(path) for path in job.output]) for job in jobs]

    def waiting():
        return {path for job, files in made if not dag.finished(job) for path in files}

    experiments = [EXPERIMENTS[name] for name in LISTED]
    attacks = AUDITS.attacks() if AUDITS.settings.enabled else []
    return so_far.SoFar(experiments, attacks, waiting)


def watched():
    """Take the terminal from Snakemake's own handler, and return what shows the run there.

    None if this process is a job, this workflow is a module of another one, or Snakemake was asked for
    more words (--verbose, --printshellcmds), for none at all, or for a plan only.
    """
    settings = workflow.output_settings
    other = settings.verbose or settings.printshellcmds or settings.debug_dag or settings.dryrun
    if MODULE or not workflow.is_main_process or other or Quietness.ALL in (settings.quiet or ()):
        return None
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            shows = terminal.Terminal(handler)
            logger.removeHandler(handler)
            logger.addHandler(shows)
            return shows
    return None  # a plug-in (--logger) has the terminal


def expected(jobs):
    """The id of each job -> its seconds on a processor, by the record of costs."""
    values = {experiment.folder: experiment for experiment in EXPERIMENTS.values()}
    outputs = {job.jobid: (job.rule.name, next(iter(job.output), None)) for job in jobs}
    return forecast.seconds(outputs, values, read_csv(forecast.TABLE))


def only_releases(jobs):
    rules = {job.rule.name for job in jobs}
    return "release" in rules and rules <= {"release", "download"}


def refused_release(job):
    """Why a release cannot be made, or None."""
    from study.configuration import releases  # imports the mathematics

    try:
        releases.check(job.wildcards.release)
    except (ConfigError, ValueError) as error:
        return str(error)


def say_finished(targets):
    """Print of which day the requested releases are that exist.

    Snakemake finds nothing to do for them, whatever the rows are.
    """
    for path in map(Path, targets):
        folder = path.parent
        if folder.parent != Path("releases") or not (folder / "model.json").exists():
            continue
        from study.configuration import releases  # imports the mathematics

        with contextlib.suppress(ConfigError, ValueError):  # no such release, or no such book
            if said := releases.finished(folder.name):
                print(said, file=sys.stderr)


def schedule_quickly():
    """For local runs, remove Snakemake's limit of 100 jobs per second, which is meant for clusters.

    With the limit, every check for ready jobs schedules another check a second later. After a thousand
    jobs, Snakemake does little else than check.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def take_first_things_first():
    """For local runs, consider the ready jobs of highest priority, where Snakemake would draw some at random."""
    scheduler, most = workflow.scheduler, workflow.scheduling_settings.subsample
    if not workflow.local_exec or not most:
        return
    select, scheduler.subsample = scheduler.job_selector, None
    scheduler.job_selector = lambda ready: select(
        set(heapq.nlargest(most, ready, attrgetter("priority")))
    )


def go_on_without_files(jobs):
    """Let a failed download stop only the jobs that need its file. Any other failed job stops the run.

    Snakemake can go on after failures (--keep-going), but does not distinguish them by their rules.
    """
    scheduler = workflow.scheduler
    if scheduler.keepgoing or all(job.rule.name != "download" for job in jobs):
        return
    handle, scheduler.keepgoing = scheduler._handle_error, True

    def handle_error(job, *further, **named):
        handle(job, *further, **named)
        if job in scheduler.failed and (job.is_group() or job.rule.name != "download"):
            scheduler.keepgoing = False

    scheduler._handle_error = handle_error


def explain_downloads(dag):
    """Name the experiments that did not run because a download failed."""
    files = {
        str(path)
        for job in dag.needrun_jobs(exclude_finished=False)
        if job.rule.name == "download" and not dag.finished(job)
        for path in job.output
    }
    lacking = {
        name
        for name, entry in DATASETS.items()
        if files.intersection(origins.source_files(entry.source).values())
    }
    concerned = {FOLDERS[f].name for f in map(folder_of, dag.jobs) if f in FOLDERS}
    names = sorted(n for n in concerned if lacking.intersection(EXPERIMENTS[n].all_datasets()))
    if names:
        print(
            f"{', '.join(names)} did not run to the end, because files could not be downloaded "
            f"({', '.join(sorted(Path(path).name for path in files))}); all others went on. The same "
            f"command tries again; without internet access, name a folder that has the files: export "
            f"{downloads.MIRRORS}=/that/folder",
            file=sys.stderr,
        )


def start_quickly():
    """Run local jobs as forks (`study.jobs.fork`), unless DP_FORK=0."""
    own_packages = workflow.deployment_settings.deployment_method
    if MODULE or own_packages or not workflow.local_exec or os.environ.get("DP_FORK") == "0":
        return
    try:
        folder = tempfile.mkdtemp(prefix="dp-")
        workflow.dp_forks = fork.begin(folder)
    except OSError:  # no temporary folder, or a path that is too long for a socket
        return
    # Jobs with several threads are not forked, because libraries create their threads when imported.
    shell.prefix(
        'set -euo pipefail; python() {{ case "$OMP_NUM_THREADS $1" in "1 $DP_HOME/scripts/job.py") '
        f'command python -IS "$DP_HOME/scripts/study/jobs/ask.py" {shlex.quote(folder)} "$@";; '
        '*) command python "$@";; esac; }}; '
    )


def shown(record):
    """Whether Snakemake prints a record. Errors of jobs that Ctrl-C stopped are hidden.

    Such jobs may end before Snakemake gets the signal, so each error record waits half a second for it. A
    busy main thread may handle the signal much later, so this function does not wait for `interrupt`.
    """
    if record.levelno < logging.ERROR or not select.select([ARRIVED], [], [], 0.5)[0]:
        return True
    return signal.SIGINT not in ARRIVED.recv(100, socket.MSG_PEEK)


def interrupt(number, frame):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("Interrupted: the same command resumes this run", file=sys.stderr)
    signal.default_int_handler(number, frame)


def folder_of(job):
    """The folder of results for a job's output: an experiment's, the audit's, or None for other jobs.

    A workflow that uses this workflow as a module has other jobs.
    """
    return next(filter(None, map(folder_of_file, job.output)), None)


def folder_of_file(path):
    if not Path(path).is_relative_to(paths.results()):
        return None
    folder, _ = paths.split(path)
    return folder if folder == "audit" or folder in FOLDERS else None


def check_folders():
    """Refuse folders that are not writable, because every job would fail with a traceback."""
    for folder in map(Path, (paths.results(), "data")):
        if folder.exists() and not os.access(folder, os.W_OK):
            sys.exit(
                f"error: {folder}/ cannot be written: make it writable, or work in a copy of the project"
            )


def end(dag, success, logs):
    """After the last job, name the results, explain killed jobs, and update the report."""
    alive.end()
    if TERMINAL:
        TERMINAL.end()
    if success:
        announce(dag)
    try:
        refresh_report(dag, success)
    except (OSError, ConfigError) as error:  # a full disk, or an invalid experiment file
        print(f"The report does not show this run: {error}", file=sys.stderr)
    if page := getattr(workflow, "dp_page", None):
        page.end()
    if not success:
        explain_downloads(dag)
        explain_kills(logs)
    if TERMINAL and TERMINAL.progress:
        seconds = f"{TERMINAL.progress.elapsed():,.0f} seconds"
        print(f"{seconds}; everything else is in {', '.join(map(str, logs))}", file=sys.stderr)


def announce(dag):
    """Print what the run has found, and where: the report or, without it, the requested files."""
    made = {str(path) for job in dag.targetjobs for path in job.output or job.input}
    folders = {}
    for path in map(Path, made):
        folders.setdefault(path.parent, set()).add(path.name)
    concerned = [
        FOLDERS[each] for each in dict.fromkeys(map(folder_of_file, made)) if each in FOLDERS
    ]
    for sentence in findings.findings(concerned, made):
        print(sentence, file=sys.stderr)
    if paths.REPORT() in made:
        print(f"All of it on one page: {Path(paths.REPORT()).resolve()}", file=sys.stderr)
        return
    shown = sorted(folders)[: MOST_FOLDERS if len(folders) <= MOST_FOLDERS else MOST_FOLDERS - 1]
    for folder in shown:
        print(f"{folder}/: {', '.join(sorted(folders[folder]))}", file=sys.stderr)
    if len(shown) < len(folders):
        print(f"and files in {len(folders) - len(shown)} more folders", file=sys.stderr)


def explain_kills(logs):
    """Explain killed jobs, whose logs are empty. logs: paths of Snakemake's logs."""
    there = filter(Path.is_file, map(Path, logs))
    said = "".join(path.read_text(errors="replace") for path in there)
    if re.search(r"exit status 137|Signals\.SIGKILL", said):
        print(
            "A job was killed, most often because the machine had no memory left for it: run fewer "
            "jobs side by side (a smaller --cores) with the same command; finished jobs stay",
            file=sys.stderr,
        )


def refresh_report(dag, success):
    """Update the report, or say that it does not show this run.

    After a success, an existing report of this configuration is updated. After a failure, a report of the
    existing results is always made.
    """
    jobs = set(dag.needrun_jobs(exclude_finished=False))
    if only_releases(jobs):
        return  # no report shows releases
    made = {str(path) for job in jobs for path in (*job.output, *job.log)}
    keep_outdated(dag)
    if success and made & {paths.REPORT(), paths.REPORT.log("partial")}:
        return
    page = records.page(paths.REPORT()) or {"configuration": None, "experiments": {}}
    # The report may show experiments that were not requested, and so not read.
    if FEW and (page["experiments"] or not success):
        EXPERIMENTS.update(configuration()[1])
    own = page["configuration"] == CONFIGURATION
    changes = bool({*page["experiments"], "audit"}.intersection(map(folder_of, jobs)))
    written = None
    if not success:
        concerned = {FOLDERS[f].name for f in set(map(folder_of, dag.jobs)) if f in FOLDERS}
        there = page["experiments"] if own else filter(has_results, CONFIG.experiments)
        written = report_what_there_is({*concerned, *there})
    elif changes and own:
        written = report_what_there_is(page["experiments"])
    if changes and written is None and page["experiments"]:
        print(
            f"{paths.REPORT()} does not show this run: the target partial_report of "
            f"{records.called(page['configuration'])} renews it",
            file=sys.stderr,
        )


def outdated_by(dag):
    """Files of verdicts and recommendations that do not follow from the cells as this run leaves them."""
    jobs = list(dag.needrun_jobs(exclude_finished=False))
    wanted = {str(path) for job in jobs for path in job.output}
    made = {str(path) for job in jobs if dag.finished(job) for path in job.output}
    folders = {folder_of(job) for job in jobs if job.rule.name == "run"} & FOLDERS.keys()
    changed = {FOLDERS[folder].axis() for folder in folders}
    files = {path: {name} for name in EXPERIMENTS for path in verdict_paths(EXPERIMENTS[name])}
    files[paths.RECOMMENDATIONS()] = {experiment.name for experiment in recommending()}
    return [
        path
        for path, names in files.items()
        if path not in made and (path in wanted or names & changed)
    ]


def keep_outdated(dag):
    """Keep the names of outdated files, so that no later report shows them, even if this run is killed."""
    path = Path(paths.REPORT.log("outdated"))
    made_here = {str(output) for job in dag.jobs for output in job.output}
    files = sorted({*outdated_by(dag), *(outdated() - made_here)})
    if files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(files))
    else:
        path.unlink(missing_ok=True)


def outdated():
    path = Path(paths.REPORT.log("outdated"))
    return set(path.read_text().splitlines()) if path.exists() else set()


def has_results(name):
    return Path(paths.results(EXPERIMENTS[name].folder)).exists()


def report_what_there_is(names):
    """Make a report of the existing results of these experiments; without names, of all listed ones.

    It does not show the content of `outdated` files. Return the report's path, or None after a failure.
    """
    words = []
    # A reading's results are shown by its main experiment.
    names = {EXPERIMENTS[name].axis() for name in EXPERIMENTS.keys() & set(names)}
    names = names or CONFIG.experiments
    for name in sorted(names, key=list_order):
        path = Path(paths.CONFIGURATION.log("shown.json", experiment=name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EXPERIMENTS[name].to_json())
        words.append(str(path))
    words = ["--configuration", *words, "--seed", str(CONFIG.seed), f"--of={CONFIGURATION}"]
    words += ["--stand-ins", all_stand_ins(), *stale_words(names), "--partial"]
    words += [
        "--outdated",
        *sorted(outdated()),
        "--out-html",
        paths.REPORT(),
        "--out-costs",
        paths.COSTS(),
    ]
    job = [sys.executable, str(paths.HOME / "scripts/job.py"), "report"]
    done = subprocess.run([*job, *words], check=False, text=True, capture_output=True)
    if done.returncode:
        print(done.stderr, end="", file=sys.stderr)
        return None
    written = done.stdout.strip()
    more = f"; {paths.REPORT()} shows more, and is kept" if written != paths.REPORT() else ""
    print(f"{written}: the existing results, with gaps{more}", file=sys.stderr)
    return written


def list_order(name):
    """Sort key: listed experiments first, in the configuration's order, then the others by name."""
    listed = CONFIG.experiments
    return (listed.index(name) if name in listed else len(listed), name)


TERMINAL = watched()

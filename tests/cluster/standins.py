#!/usr/bin/env python3
"""Mock commands of LSF, Slurm and Grid Engine, which check and record their arguments, and run the job.

Tests link this file under the commands' names. The folder in the environment variable STANDINS gets
`calls.jsonl`, one line per call, and for each job a folder `jobs/<id>` with its process id, name, working
folder and exit code.
"""

import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ["STANDINS"])
SBATCH = ("--parsable", "--job-name", "--cpus-per-task", "--mem", "--time", "--output")
SBATCH += ("--open-mode", "--no-requeue", "--account", "--partition")


def refuse(message):
    sys.exit(f"{Path(sys.argv[0]).name}: {message}")


def whole(text, what):
    """`text` as a positive integer, which schedulers require for threads, minutes and megabytes."""
    if not re.fullmatch(r"[1-9]\d*", str(text)):
        refuse(f"{what} must be a positive whole number, not {text!r}")
    return int(text)


def start(command, name, folder, output):
    jobs = ROOT / "jobs"
    jobs.mkdir(exist_ok=True)
    number = 1000
    while True:
        try:
            (jobs / str(number)).mkdir()
            break
        except FileExistsError:
            number += 1
    job = jobs / str(number)
    (job / "name").write_text(name)
    (job / "folder").write_text(str(folder))
    with Path(output).open("ab") as log:
        process = subprocess.Popen(
            ["sh", "-c", f"( {command} ); echo $? > {job}/code.new; mv {job}/code.new {job}/code"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (job / "process").write_text(str(process.pid))
    return number


def jobs():
    """(id, name, folder, exit code or None) of every job."""
    for job in sorted((ROOT / "jobs").glob("*/process")):
        code = job.with_name("code")
        yield (
            job.parent.name,
            job.with_name("name").read_text(),
            job.with_name("folder").read_text(),
            int(code.read_text()) if code.exists() else None,
        )


def kill(numbers):
    for number in numbers:
        job = ROOT / "jobs" / number
        if not (job / "code").exists():
            os.killpg(int((job / "process").read_text()), signal.SIGKILL)
            (job / "code").write_text("137")


def options(words, valued, flags=()):
    """({option: values}, remaining words). An option's value is the next word, or follows =."""
    values = {}
    words = list(words)
    while words and words[0].startswith("-"):
        name, joined, value = words.pop(0).partition("=")
        if name in flags:
            values[name] = []
        elif name in valued:
            values.setdefault(name, []).append(value if joined else words.pop(0))
        else:
            refuse(f"unknown option {name}")
    return values, words


def bsub(words):
    valued = ("-J", "-o", "-e", "-env", "-P", "-q", "-W", "-n", "-R", "-cwd")
    values, command = options(words, valued)
    if len(command) != 1:
        refuse("one command expected")
    whole(values["-n"][0], "-n")
    whole(values["-W"][0], "-W (minutes)")
    if "span[hosts=1]" not in values["-R"]:
        refuse("the job's threads must share a host")
    number = start(command[0], values["-J"][0], values["-cwd"][0], values["-o"][0])
    print(f"Job <{number}> is submitted to queue <{values.get('-q', ['normal'])[0]}>.")


def bjobs(words):
    states = {None: "RUN", 0: "DONE"}
    if words[:3] == ["-noheader", "-o", "jobid stat"] and words[3] == "-aJ":
        for number, name, _, code in jobs():
            if fnmatch.fnmatchcase(name, words[4]):
                print(number, states.get(code, "EXIT"))
    elif words == ["-noheader", "-o", "jobid sub_cwd delimiter='|'"]:
        for number, _, folder, code in jobs():
            if code is None:
                print(f"{number}|{folder}")
    elif words != ["-noheader"]:
        refuse(f"unexpected {words}")


def badmin(words):
    print("MBD configuration at now")
    values = {"LSB_SHAREDIR": ROOT, "LSF_CONFDIR": ROOT}
    values["LSF_UNIT_FOR_LIMITS"] = os.environ.get("LSF_UNIT_FOR_LIMITS", "MB")
    for name, value in values.items():
        print(f"\t{name} = {value}")


def lsclusters(words):
    print("CLUSTER_NAME   STATUS   MASTER_HOST   ADMIN   HOSTS  SERVERS")
    print("test           ok       localhost     root        1        1")


def sbatch(words):
    values, script = options(words, SBATCH, flags=("--parsable", "--no-requeue"))
    if "--parsable" not in values or len(script) != 1:
        refuse("--parsable and one script expected")
    for name in ("--cpus-per-task", "--mem", "--time"):
        whole(values[name][0], name)
    output = values["--output"][0].replace("%j", "job")
    print(start(f"sh {script[0]}", values["--job-name"][0], Path.cwd(), output))


def squeue(words):
    states = {None: "RUNNING", 0: "COMPLETED"}
    if words[:5] == ["-h", "-t", "all", "-o", "%T"] and words[5] == "-j":
        matching = [states.get(job[3], "FAILED") for job in jobs() if job[0] == words[6]]
        if not matching:
            refuse("error: Invalid job id specified")
        print(matching[0])
    elif words == ["--noheader", "--me", "--format=%A|%j|%Z"]:
        for number, name, folder, code in jobs():
            if code is None:
                print(f"{number}|{name}|{folder}")
    elif words != ["--noheader", "--me"]:
        refuse(f"unexpected {words}")


def qsub(words):
    values, script = options(words, ("-b", "-j", "-pe", "-l", "-o", "-N"), flags=("-terse", "-cwd"))
    # -pe takes the name of the parallel environment and the number of slots.
    whole(script[0], "slots")
    more, script = options(script[1:], ("-l",))
    limits = dict(limit.split("=") for limit in more["-l"])
    whole(limits["h_rt"], "h_rt (seconds)")
    whole(limits["h_vmem"].removesuffix("M"), "h_vmem")
    if not {"-terse", "-cwd"} <= set(values) or values["-b"] != ["n"] or len(script) != 1:
        refuse("-terse, -cwd, -b n and one script expected")
    print(start(f"sh {script[0]}", "qsub", Path.cwd(), ROOT / "output"))


def main():
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (ROOT / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps([name, *words]) + "\n")
    commands = {"bkill": kill, "scancel": kill, "qdel": kill, "bhist": lambda words: None}
    for command in (bsub, bjobs, badmin, lsclusters, sbatch, squeue, qsub):
        commands[command.__name__] = command
    commands[name](words)


if __name__ == "__main__":
    main()

import re

import pytest

from project import TINY


def counts(output):
    """Name -> (finished jobs, all jobs), from the last table."""
    last = output.rpartition("done      of\n")[2]
    lines = re.findall(r"^(\S+) +(\d+) +(\d+) +(\d+) %", last, re.MULTILINE)
    assert all(int(percent) == 100 * int(done) // int(of) for _, done, of, percent in lines)
    return {name: (int(done), int(of)) for name, done, of, _ in lines}


def test_all_is_done_after_a_run(finished, edited):
    actual = counts(edited.python("scripts/tools/progress.py", *TINY))
    assert set(actual) == {"(shared)", "data", "cm08", "all"}
    assert all(done == of for done, of in actual.values())
    total = int(re.search(r"^total +(\d+)", finished.output, re.MULTILINE)[1])
    assert actual["all"][1] == total - 1  # total includes the target's rule, which makes no file


def test_an_edit_counts_as_to_be_done(edited):
    edited.append("scripts/dp/mechanisms/output_perturbation.py", "\nAN_EDIT = True\n")
    actual = counts(edited.python("scripts/tools/progress.py", *TINY))
    done, of = actual["cm08"]
    assert of - done == len([job for job in edited.plan(*TINY) if "results/cm08" in job])
    assert actual["data"] == (1, 1)


@pytest.mark.slow
def test_a_run_is_watched_to_its_end(fresh):
    project = fresh("watched")
    target = (*TINY, "--", "results/cm08/results.csv")
    run = project.start("--cores", 2, *target)
    output = project.python("scripts/tools/progress.py", "--watch", 1, *target)
    project.finish(run)
    assert all(done == of for done, of in counts(output).values())
    assert output.count("done      of") > 1, "no job was seen before the end"

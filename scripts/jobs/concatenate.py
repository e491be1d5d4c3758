"""Concatenates the rows of audit files."""

import csv
from collections import Counter
from pathlib import Path

from study.jobs import script
from study.jobs.files import read_csv, write_csv

REFUTED = ("refutes", "exceeds")  # first words of the verdicts that stop a strict audit


def main():
    parser = script.parser(__doc__)
    parser.add_argument("files", nargs="+", help=".csv, all with the same columns")
    parser.add_argument("--strict", action="store_true", help="fail where one refutes a claim")
    parser.add_argument(
        "--replays", help=".csv, whose rows on the same mechanisms count too if strict"
    )
    parser.add_argument("--line", action="store_true", help="say in a line what they show")
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    header, rows = None, []
    for file in arguments.files:
        with Path(file).open(newline="", encoding="utf-8") as handle:
            columns, *more = csv.reader(handle)
        if header not in (None, columns):
            raise ValueError(f"{file}: has other columns than {arguments.files[0]}; make it again")
        header = columns
        rows += more
    if arguments.strict:
        attacks = [dict(zip(header, row, strict=True)) for row in rows]
        refuse(attacks, read_csv(arguments.replays) if arguments.replays else [])
    write_csv(arguments.out, header, rows)
    if arguments.line:
        print(line([dict(zip(header, row, strict=True)) for row in rows]))


def line(attacks):
    proven = {attack["epsilon_proven"] for attack in attacks}
    said = "nothing is proven" if "" in proven else f"proven in {len(proven)} settings"
    said = "no finite epsilon is proven" if proven == {"inf"} else said
    words = Counter(attack["replay"].partition(":")[0] for attack in attacks)
    replays = ", ".join(f"{word} ({count} of {len(attacks)})" for word, count in words.items())
    worst = max(attacks, key=beyond)
    return (
        f"{worst['mechanism']}: {said}; replay: {replays}; attack: at least {worst['epsilon_audited']} of "
        f"{worst['epsilon_claimed']} claimed, {worst['verdict'].partition(':')[0]} ({worst['attack']})"
    )


def beyond(attack):
    return float(attack["epsilon_audited"]) / max(float(attack["epsilon_claimed"]), 1e-9)


def refuse(attacks, replays):
    """Raise if an attack, the replay of its pair or a row of `replays` refutes a claim."""
    refuted = [attack for attack in attacks if attack["verdict"].startswith(REFUTED)]
    if refuted:
        worst = max(refuted, key=beyond)
        raise ValueError(
            f"{worst['mechanism']} claims epsilon {worst['epsilon_claimed']}, and the attack "
            f"{worst['attack']} shows that it is at least {worst['epsilon_audited']}: correct the claim "
            f"or the noise (this stops the audit because of `strict`; {len(refuted)} of {len(attacks)} "
            f"attacks show one)"
        )
    names = {attack["mechanism"] for attack in attacks}
    replays = [*attacks, *(each for each in replays if each["mechanism"] in names)]
    refuted = [each for each in replays if each["replay"].startswith(REFUTED)]
    if refuted:
        first = refuted[0]
        raise ValueError(
            f"{first['mechanism']} claims epsilon {first['epsilon_claimed']}, and the replay of the pair "
            f"{first['pair']} says: {first['replay']}. Correct the claim or the noise (this stops the "
            f"audit because of `strict`; {len(refuted)} of {len(replays)} replays say so)"
        )

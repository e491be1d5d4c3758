"""Lists every cell of every results.csv with its claimed, proven and audited epsilon."""

import json

from dp.mechanisms import MECHANISMS
from study.jobs import script
from study.jobs.files import read_csv, write_csv

STATED = (
    *("experiment", "dataset", "method", "mechanism", "options", "train_size", "epsilon", "delta"),
    *("epsilon_claimed", "epsilon_proven", "delta_proven", "adjacency", "reason"),
)
COLUMNS = (*STATED, "epsilon_audited", "audited_by", "low_bits")


def main():
    parser = script.parser(__doc__)
    parser.add_argument("results", nargs="*", help="results.csv of every experiment")
    parser.add_argument("--ledger", required=True, help=".csv of all attacks")
    parser.add_argument("--out", required=True, help=".csv, one row per cell")
    arguments = parser.parse_args()

    attacks = {}
    for attack in read_csv(arguments.ledger):
        variant = variant_of(attack["mechanism"], json.loads(attack["arguments"]))
        attacks.setdefault((attack["mechanism"], variant), []).append(attack)
    rows = []
    for cell in (cell for path in arguments.results for cell in read_csv(path)):
        variant = variant_of(cell["mechanism"], json.loads(cell["options"]))
        own = attacks.get((cell["mechanism"], variant), ())
        rows.append((*(cell[column] for column in STATED), *audited(cell, own), low_bits(own)))
    write_csv(arguments.out, COLUMNS, rows)


def variant_of(mechanism, options):
    """Options whose values are strings, such as loss or calibration, with defaults filled in."""
    if mechanism not in MECHANISMS:
        return frozenset()  # the auditor's control is not a mechanism
    options = {
        key: options.get(key, default) for key, default in MECHANISMS[mechanism].defaults().items()
    }
    return frozenset((key, value) for key, value in options.items() if isinstance(value, str))


def audited(cell, attacks):
    """The largest lower bound among attacks that apply to this cell, and the attack that found it.

    An attack applies if it has the cell's delta and variant of the mechanism, and if its claimed and proven
    epsilons are at most the cell's. Its numbers of rows and columns, and its lambda, may differ, because
    the claim is for all values. All bounds on a mechanism hold simultaneously, so the largest has the same
    confidence.
    """
    stated = ("epsilon_claimed", "epsilon_proven")
    usable = [
        attack
        for attack in attacks
        if all(bound(attack[key]) <= bound(cell[key]) * (1 + 1e-9) for key in stated)
        and float(attack["delta"]) == float(cell["delta"])
    ]
    if not usable:
        return "", "no attack where no more is claimed and proven"
    best = max(usable, key=lambda attack: float(attack["epsilon_audited"]))
    where = f"{best['attack']} at epsilon {best['epsilon']}, n = {best['n']}, d = {best['d']}"
    together = f"one of {best['family']} attacks whose bounds hold together"
    return best["epsilon_audited"], f"{where}; {together}"


def low_bits(attacks):
    findings = sorted(attack.get("low_bits", "") for attack in attacks)  # "broken" comes first
    return findings[0] if findings else ""


def bound(text):
    """An upper bound as a number, infinite if none is known."""
    return float(text or "inf")

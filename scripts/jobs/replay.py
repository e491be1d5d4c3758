"""Replays every private mechanism, to find how one record changes its noised and exact outputs."""

import json

from dp_audit import audit, replay
from study import canonical
from study.jobs import script
from study.jobs.files import write_csv

COLUMNS = (
    *("mechanism", "pair", "epsilon", "delta", "epsilon_claimed", "epsilon_proven"),
    *("replay", "epsilon_replay", "mu", "pure", "why"),
)


def main():
    parser = script.parser(__doc__)
    parser.add_argument(
        "--attacks", type=json.loads, default=[], help="[mechanism, epsilon, attack], JSON"
    )
    parser.add_argument(
        "--mechanisms", nargs="*", default=[], help="on the pairs for any mechanism"
    )
    parser.add_argument("--out", required=True, help=".csv, one row per mechanism and pair")
    arguments = parser.parse_args()

    rows = [
        row(name, attack["pair"], epsilon, attack["delta"], *replayed(name, epsilon, attack))
        for name, epsilon, attack in arguments.attacks
    ]
    for name in arguments.mechanisms:
        if audit.find(name).private:
            for pair, delta, *result in replay.on_general_pairs(name):
                rows.append(row(name, pair, 1.0, delta, *result))
    write_csv(arguments.out, COLUMNS, rows)


def replayed(name, epsilon, attack):
    return replay.of_mechanism(name, attack["pair"], epsilon, attack["delta"], **attack["options"])


def row(name, pair, epsilon, delta, result, stated):
    said = stated.claimed_epsilon, stated.epsilon, replay.verdict(result, stated)
    of_noise = result.epsilon, result.mu, result.pure, result.why
    return name, pair, canonical.epsilon(epsilon), delta, *said, *of_noise

"""Audits released programs: claimed, proven and audited epsilons."""

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_audit import audit
from study.configuration.inputs import NOTHING
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.jobs.files import write_csv

FACTS = ("repository", "commit", "committed", "read")
COLUMNS = (
    *("case", "mechanism", "options", *FACTS, "pair", "epsilon_claimed", "delta", "epsilon_proven"),
    *("epsilon_audited", "statistic", "trials", "confidence", "family", "adjacency"),
    *("differs", "repair", "epsilon_repaired", "reason"),
)


class ReleasedCode(Options):
    programs: dict = {}
    confidence: float = 0.95


@analysis(NOTHING, ReleasedCode)
def released_code(experiment, spec, inputs, seed, out):
    """One row per program, attack and claimed epsilon of options["programs"].

    A program's entry states its mechanism, repository, commit, and the dates of the commit and of our
    reading. It also states delta, trials, how the program differs from the proof, and the repair.
    `repaired` names a repaired mechanism, which is attacked in the same way. It gets `repaired_options` and
    those of the attack's options that it accepts. An entry of `attacks` states options, a pair, claimed
    epsilons, and values that replace the program's. All bounds hold simultaneously with probability
    options["confidence"].
    """
    cases = {
        f"{name}: {label}".replace("_", " "): program | attack
        for name, program in spec.options["programs"].items()
        for label, attack in program["attacks"].items()
    }
    family = sum(2 * len(case["epsilons"]) for case in cases.values())
    confidence = spec.options["confidence"]
    rows = []
    for name, case in cases.items():
        for epsilon in case["epsilons"]:
            attack = {"delta": case["delta"], "trials": case["trials"]}
            attack["confidence"] = audit.of_each(confidence, family)

            def bound(
                mechanism, options, label, name=name, epsilon=epsilon, attack=attack, case=case
            ):
                rng = generator(seed, "released code", name, label)
                return audit.attack(mechanism, case["pair"], epsilon, rng=rng, **attack, **options)

            options = case.get("options", {})
            guarantee = audit.guarantee(
                case["mechanism"], case["pair"], epsilon, case["delta"], **options
            )
            attacked = bound(case["mechanism"], options, "released")
            taken = MECHANISMS[case["repaired"]].options
            settings = {name: value for name, value in options.items() if name in taken}
            settings |= case.get("repaired_options", {})
            repaired = bound(case["repaired"], settings, "repaired")["epsilon"]
            rows.append(
                (
                    *(name, case["mechanism"], ", ".join(f"{k} {v}" for k, v in options.items())),
                    *(case[fact] for fact in FACTS),
                    *(case["pair"], guarantee.claimed_epsilon, case["delta"], guarantee.epsilon),
                    *(attacked["epsilon"], attacked["statistic"]),
                    *(case["trials"], confidence, family),
                    *(guarantee.adjacency, case["differs"], case["repair"], repaired),
                    guarantee.reason,
                )
            )
    write_csv(out, COLUMNS, rows)

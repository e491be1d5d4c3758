"""What job scripts have in common: data, folds, lambda, and errors as one sentence."""

import errno
import itertools
import json
import math
import sys

from dp.data import reshuffle, split_folds
from dp.evaluation import error_rate, mean_squared_error
from dp.seeds import generator
from study.files import read_json
from study.prepared import Prepared


def run(main):
    """Run a job's main function; what a user can mend is told in one sentence, with exit status 1."""
    try:
        main()
    except MemoryError as error:
        sys.exit(
            f"error: not enough memory{f' ({error})' if str(error) else ''}: run fewer jobs side by "
            f"side (a smaller --cores) or on a larger machine, with the same command; finished jobs stay"
        )
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            sys.exit(f"error: {error}")
        message = (
            f"error: the disk is full ({error}): free some space and repeat the command; "
            f"finished jobs stay"
        )
        print(message)  # the log that standard error goes to is on the same disk
        sys.exit(message)
    except ValueError as error:
        sys.exit(f"error: {error}")


def add_data_arguments(parser, lam=True):
    """Arguments of every job that trains: data, folds, training size, seed and (not to choose) lambda."""
    parser.add_argument("--data", required=True, help="prepared rows, .npz")
    parser.add_argument("--meta", required=True, help="what was done to them, .json")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--dataset", required=True)
    split = parser.add_mutually_exclusive_group(required=True)
    split.add_argument("--folds", type=int)
    split.add_argument("--simulations", type=int)
    parser.add_argument("--train-size", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    if lam:
        parser.add_argument("--lam", required=True, help="a number, or the .json that tuning wrote")


def training_folds(arguments, *, first=None, in_blocks=False):
    """(X, y) of `train_size` training rows and of the test rows, for every fold or simulation.

    first: only so many of them, None for all. in_blocks: whether their reader reads them so, see
    `Prepared.floats`.
    """
    data = Prepared(arguments.data)
    size = arguments.train_size
    has_test = _has_test(arguments, data)
    official = data.floats(part="test", in_blocks=in_blocks) if has_test else None
    # Steps that were put off treat every row alone: done once for all rows, where the splits ask for
    # more rows than there are, unless these are to be read in blocks.
    count = min(first or math.inf, arguments.simulations or arguments.folds)
    again = size * count > len(data.y) and not (in_blocks and data.large())
    whole = data.floats() if again else None

    def rows(chosen):
        if whole is None:
            return data.floats(chosen, in_blocks=in_blocks)
        return whole[0][chosen], whole[1][chosen]

    for train, test in itertools.islice(_splits(arguments, data), first):
        if size > len(train):
            where = f" in each of {arguments.folds} folds" if arguments.folds else ""
            raise ValueError(
                f"{arguments.dataset} has {len(train)} training rows{where}, "
                f"not the {size} asked for in train_sizes"
            )
        yield rows(train[:size]), official or rows(test)


def all_training_rows(arguments):
    """X of all training rows of every fold or simulation, of which `training_folds` gives the first ones.

    One array, again and again, where all splits train on all rows.
    """
    data = Prepared(arguments.data)
    X, _ = data.floats()
    for train, _ in _splits(arguments, data):
        yield X if _has_test(arguments, data) else X[train]


def _has_test(arguments, data):
    """Whether all splits test on the data's own test part, and train on all the other rows."""
    return bool(arguments.simulations) and "X_test" in data


def _splits(arguments, data):
    """(train, test) row numbers of every fold or simulation."""
    if arguments.simulations:
        return _simulations(arguments, data)
    # The split has no axis for the method: all methods see the same folds and nested subsets.
    rng = generator(arguments.seed, arguments.experiment, arguments.dataset, "folds")
    return split_folds(len(data.y), arguments.folds, rng)


def _simulations(arguments, data):
    for simulation in range(arguments.simulations):
        # One generator each: simulation k is the same whatever the number of simulations.
        axes = (arguments.experiment, arguments.dataset, simulation, "simulation")
        rng = generator(arguments.seed, *axes)
        yield reshuffle(len(data.y), rng, has_test="X_test" in data)


def measure(meta):
    """What tuning and searches compare: of classes the error, of numbers the mean squared error."""
    return mean_squared_error if "target" in meta else error_rate


def public_rows(path):
    """(X, y) of a prepared data set's public rows; None where it has none."""
    data = Prepared(path)
    return data.floats(part="public") if "X_public" in data else None


def read_lambda(text):
    """The regularisation, given as a number or as the path of a tuning's or a search's result."""
    return read_settings(text)[0]


def read_settings(text):
    """(lambda, options) given as a number, or as the .json that a tuning or a search wrote."""
    if not text.endswith(".json"):
        return float(text), {}
    chosen = read_json(text)
    return chosen["lambda"], chosen.get("options", {})


def parse_options(text):
    """A mechanism's options from JSON on the command line."""
    return json.loads(text)

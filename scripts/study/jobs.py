"""What job scripts have in common: data, folds, lambda, and errors as one sentence."""

import json
import sys

from dp.data import split_folds
from dp.seeds import generator
from study.files import read_json
from study.prepared import Prepared


def run(main):
    """Run a job's main function; what a user can mend is told in one sentence, with exit status 1."""
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def add_data_arguments(parser):
    """Arguments of every job that trains: the data, its folds, the training size and the seed."""
    parser.add_argument("--data", required=True, help="prepared rows, .npz")
    parser.add_argument("--meta", required=True, help="what was done to them, .json")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--folds", type=int, required=True)
    parser.add_argument("--train-size", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--lam", required=True, help="a number, or the .json that tuning wrote")


def training_folds(arguments):
    """(X, y) of `train_size` training rows and of the test rows, for every fold."""
    data = Prepared(arguments.data)
    # The split has no axis for the method: all methods see the same folds and nested subsets.
    rng = generator(arguments.seed, arguments.experiment, arguments.dataset, "folds")
    size = arguments.train_size
    for train, test in split_folds(len(data.y), arguments.folds, rng):
        if size > len(train):
            raise ValueError(
                f"{arguments.dataset} has {len(train)} training rows in each of "
                f"{arguments.folds} folds, not the {size} asked for in train_sizes"
            )
        yield data.floats(train[:size]), data.floats(test)


def public_rows(path):
    """(X, y) of a prepared data set's public rows; None where it has none."""
    data = Prepared(path)
    return data.floats(part="public") if "X_public" in data else None


def read_lambda(text):
    """The regularisation, given as a number or as the path of a tuning's result."""
    return read_json(text)["lambda"] if text.endswith(".json") else float(text)


def parse_options(text):
    """A mechanism's options from JSON on the command line."""
    return json.loads(text)

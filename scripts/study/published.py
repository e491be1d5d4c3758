"""Values that a source printed, beside the cells that regenerate them.

An entry's option `published` says which printed table to read and what its rows and columns are here:

    published:
      table: table_2                                      # a table of config/published/<source>.yaml
      rows: {separable: v20_separable}                    # printed name: data set or method
      columns: {algorithm_1: lasso_output_perturbation}   # printed name: method or data set
"""

from pathlib import Path

KEYS = ("table", "rows", "columns")


def path(experiment):
    """The file of the experiment's source."""
    return Path("config/published") / f"{experiment.values['source']}.yaml"


def cells(experiment, mapping):
    """(data set, method) -> printed value (the mean, where a spread is printed with it)."""
    return _cells(experiment.values, mapping)


def check(values, mapping):
    """Raise ValueError unless the mapping names printed cells and the experiment's own names.

    values: an experiment's configuration.
    """
    if "source" not in values:
        raise ValueError("the experiment names no 'source'")
    if not isinstance(mapping, dict) or sorted(mapping) != sorted(KEYS):
        raise ValueError(f"needs exactly the keys {', '.join(KEYS)}")
    _cells(values, mapping)


def _cells(values, mapping):
    import yaml  # 0.02 s to import: only where published values are shown

    file = Path("config/published") / f"{values['source']}.yaml"
    try:
        tables = yaml.safe_load(file.read_text(encoding="utf-8"))["tables"]
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror})") from None
    if mapping["table"] not in tables:
        raise ValueError(f"{file} has no table {mapping['table']!r} (it has: {', '.join(tables)})")
    table = tables[mapping["table"]]
    found = {}
    for row, row_name in mapping["rows"].items():
        for column, column_name in mapping["columns"].items():
            if row not in table or column not in table["columns"]:
                missing = column if row in table else row
                raise ValueError(f"{file}: {mapping['table']} has no row or column {missing!r}")
            printed = table[row]
            value = printed[column if isinstance(printed, dict) else table["columns"].index(column)]
            value = value[0] if isinstance(value, list) else value
            found[_names(values, row_name, column_name)] = float(value)
    return found


def _names(values, *pair):
    """(data set, method), whichever of the two is which."""
    for dataset, method in (pair, pair[::-1]):
        if dataset in values["datasets"] and method in values["methods"]:
            return dataset, method
    raise ValueError(
        f"{pair[0]!r} and {pair[1]!r} are not a data set and a method of the experiment"
    )

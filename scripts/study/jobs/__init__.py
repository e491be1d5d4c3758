"""Code that job scripts share: arguments, files, folds, records of runs."""

"""Code that jobs share: arguments, files, folds, records of runs."""

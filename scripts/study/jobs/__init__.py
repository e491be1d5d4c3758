"""What job scripts have in common: arguments, files, draws of cells, records of runs."""

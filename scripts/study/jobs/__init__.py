"""What job scripts share: arguments, files, draws of cells, records of runs."""

"""The jobs of the workflow, one file each: read files, call functions, write files."""

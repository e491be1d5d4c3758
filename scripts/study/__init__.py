"""Code that the workflow and its job scripts share: configuration, cells, paths and files."""

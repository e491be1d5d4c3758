"""Code that the workflow and its jobs share: configuration, cells, paths and files."""

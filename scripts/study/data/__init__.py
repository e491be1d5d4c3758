"""Find, download, read and prepare data sets, and read their prepared rows."""

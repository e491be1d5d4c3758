"""Find, download and read data sets, and read their prepared rows."""

"""Where data sets come from: places of files, downloads, readers, prepared rows."""

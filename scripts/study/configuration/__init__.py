"""Read, merge, check and resolve the configuration."""

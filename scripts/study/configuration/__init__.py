"""The configuration: read, merged, resolved, and refused in one sentence."""

"""Tables: one module per kind, each function returns (column names, rows)."""

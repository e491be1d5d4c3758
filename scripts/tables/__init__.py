"""Tables, one module per kind. Each function returns (column names, rows)."""

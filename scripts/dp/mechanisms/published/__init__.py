"""The defective forms of mechanisms that sources print or run, each under a name of its own."""

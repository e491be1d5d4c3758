"""Differentially private learning of linear models: arrays in, arrays out.

Rooms: `mechanisms` (what is released), `solvers` (certified minima), `descents` (noisy ones), `privacy`
(what is proven, and worst pairs), `data` (rows). Beside them: noise, accounting, losses, audit,
evaluation and tuning.
"""

"""Published packages, judged as they are released: records of mechanisms, and what was found of each.

A record (records/NAME.toml) says which release, which mechanism, what its documentation claims, and how to run it; what
was found is in recorded.json, written by `dpassay packages --run --record` and never by hand.
"""

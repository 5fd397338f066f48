"""Published packages, judged as released: records of mechanisms, and what was found about each.

A record (records/NAME.toml) states which release, which mechanism, what its documentation claims, and how to run it;
the findings are in recorded.json, written by `dpassay packages --run --record` and never by hand.
"""

"""The page of `dpassay serve`: a claim that can be moved, its verdict, and the lecture's pictures of it.

The server parses pipelines and nothing else: no request names a file, an object or a program. What it computes runs in
worker processes with a time limit, so that a slow question never blocks a quick one.
"""

"""The page of `dpassay serve`: a claim that can be varied, its verdict, and the lecture's pictures of it.

The server only parses pipelines: no request can name a file, an object or a program. Computations run in worker
processes with a time limit, so that a slow question never blocks a fast one.
"""

"""Where numbers are made, and where work runs: two seams that know nothing of each other.

Numbers: `plain` (numpy, always there), `fused` (numba: drawn, used and forgotten in one loop) and `gpu` (Triton). The
three have the same functions and give the same counts, since all take their random numbers from `philox`. Work: `crew`,
which hands tasks to this process, to local processes or to a Dask cluster, and gives back their results in order.

Nothing here imports more than numpy until it is asked for numba, Triton or Dask.
"""

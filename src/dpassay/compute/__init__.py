"""Where numbers are made, and where work runs: two seams that know nothing of each other.

Numbers: `numpy_kernels` (always there), `numba_kernels` (drawn, used and forgotten in one loop) and `triton_kernels`
(GPU). The three have the same functions and give the same counts, since all take their random numbers from `philox`.
Work: `executors`, which run tasks in this process, in local processes or on a Dask cluster, and return results in
order.

Nothing here imports more than numpy until it is asked for numba, Triton or Dask.
"""

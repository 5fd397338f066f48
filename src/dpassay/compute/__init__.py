"""Where random numbers are drawn and counted, and where work runs: two parts that are independent of each other.

Numbers: `numpy_kernels` (always available), `numba_kernels` (draws, uses and discards each number in one loop) and
`triton_kernels` (GPU). The three have the same functions and give the same counts, since all take their random numbers
from `philox`.

Work: `executors`, which run tasks in this process, in local processes or on a Dask cluster (`cluster`), and return
results in order.

Nothing here imports more than numpy until numba, Triton or Dask is requested.
"""

"""The requested executor: this process, threads, local processes, or a Dask cluster."""

from __future__ import annotations

from dpassay.compute.executors import Executor, InProcess, Processes, Threads
from dpassay.errors import InputError

MOST_WORKERS = 1024


def make_executor(workers: int | None = None, cluster: str | None = None, threads: int = 1) -> Executor:
    """The requested executor: local processes, a cluster, or otherwise this process, with threads for kernels.

    >>> make_executor().describe()
    'this process'
    >>> make_executor(workers=0)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: workers must be a whole number from 1 to 1024, got 0
    """
    if workers is not None and cluster is not None:
        raise InputError("give workers or a cluster, not both: a cluster has its own")
    if cluster is not None:
        from dpassay.compute.cluster import Cluster

        return Cluster(cluster)
    if workers is not None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
            raise InputError(f"workers must be a whole number from 1 to {MOST_WORKERS}, got {workers}")
        return Processes(workers)
    return InProcess() if threads == 1 else Threads(threads)

"""Where the fleets of a grid are trained: this machine, a Ray cluster, or Slurm.

>>> from pairlearn.experiments.clusters import open_cluster
>>> open_cluster("ray:10.0.0.1:6379")
Ray('10.0.0.1:6379')
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pairlearn.experiments.clusters.interface import Cluster as Cluster
from pairlearn.experiments.clusters.interface import ClusterError as ClusterError

__all__ = ["Cluster", "ClusterError", "open_cluster"]


def open_cluster(
    name: str = "local", options: Sequence[str] = (), folder: Path = Path("jobs")
) -> Cluster:
    """The cluster of that name, to be used in a ``with`` block.

    Parameters
    ----------
    name : str
        "local" for processes of this machine; "ray" for a Ray cluster that is started
        here, "ray:HOST:PORT" for one that runs, "ray:auto" for the one that runs on this
        machine; "slurm" for jobs of Slurm, "slurm:local" for such jobs on this machine.
    options : sequence of str
        ``KEY=VALUE``. Of "local": workers. Of "ray": cpus, gpus. Of "slurm": jobs,
        folder, and what a job asks for, see :class:`~.on_slurm.Slurm`.
    folder : Path
        Where Slurm's jobs are kept if no option says otherwise.

    Returns
    -------
    Cluster

    Examples
    --------
    >>> with open_cluster("local", ["workers=2"]) as cluster:
    ...     cluster.device("cpu")
    'cpu'
    """
    kind, _, where = name.partition(":")
    given = _parsed(options)
    if kind == "local" and not where:
        from pairlearn.experiments.clusters.processes import Processes

        return Processes(**_counts(given, kind, "workers"))
    if kind == "ray" and (where or name == "ray"):
        from pairlearn.experiments.clusters.on_ray import Ray

        return Ray(where or None, **_counts(given, kind, "cpus", "gpus"))
    if name in ("slurm", "slurm:local"):
        from pairlearn.experiments.clusters.on_slurm import Slurm

        folder = Path(given.pop("folder", folder))
        jobs = _counts({k: given.pop(k) for k in ("jobs",) if k in given}, kind, "jobs")
        return Slurm(folder, "local" if where else "slurm", given, **jobs)
    raise ValueError(
        f"cluster {name!r} is unknown; choose local, ray, ray:HOST:PORT, ray:auto, slurm or "
        "slurm:local"
    )


def _parsed(options: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals and value):
            raise ValueError(f"cluster option {option!r} is not KEY=VALUE, such as time=60")
        parsed[key.strip()] = value.strip()
    return parsed


def _counts(given: dict[str, str], kind: str, *known: str) -> dict[str, int]:
    """The options of a cluster that takes whole numbers only."""
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"cluster option {key!r} is unknown to {kind}; it knows {known}")
        if not value.isdigit():
            raise ValueError(f"cluster option {key}={value} must be a whole number")
    return {key: int(value) for key, value in given.items()}

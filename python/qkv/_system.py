"""Threads and instruction sets."""

from __future__ import annotations

from . import _qkv


def set_threads(count: int) -> None:
    """Sets the number of threads, 1 to 1024, that calls from this Python thread use.

    The default is OMP_NUM_THREADS, or one per processor that the process may use. Results do not depend on it.

    >>> qkv.set_threads(2)
    >>> qkv.threads()
    2

    Raises qkv.Error, a ValueError, for another number.
    """
    _qkv.set_threads(count)


def threads() -> int:
    """Returns the number of threads that calls from this Python thread use.

    >>> qkv.threads() >= 1
    True
    """
    return _qkv.threads()


def active_isa() -> str:
    """Returns the instruction set in use. The environment variable QKV_ISA forces one.

    >>> qkv.active_isa() in ("avx512", "avx2", "neon", "portable")
    True
    """
    return _qkv.version().partition("(")[2].rstrip(")")


def fma_peak(seconds: float = 0.2) -> float:
    """Measures the peak rate of all threads: float32 operations per second in multiply-adds on registers.

    >>> gigaflops = qkv.fma_peak(0.01) / 1e9
    >>> gigaflops > 0
    True

    seconds: time of the measurement.
    """
    return _qkv.fma_peak(seconds)

"""Threads and instruction sets."""

from __future__ import annotations

from . import _qkv


def set_threads(count: int) -> None:
    """Sets the number of threads, 1 to 1024, that calls from this Python thread use.

    The default is OMP_NUM_THREADS, or one per processor. Results do not depend on it.
    """
    _qkv.set_threads(count)


def threads() -> int:
    """Returns the number of threads that calls from this Python thread use."""
    return _qkv.threads()


def active_isa() -> str:
    """Returns the instruction set in use: "avx512", "avx2", "neon" or "portable". The environment variable QKV_ISA forces one."""
    return _qkv.version().partition("(")[2].rstrip(")")


def fma_peak(seconds: float = 0.2) -> float:
    """Measures the peak rate of all threads: float32 operations per second in multiply-adds on registers."""
    return _qkv.fma_peak(seconds)

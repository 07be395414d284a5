"""How many threads compute, and with which instructions."""

from __future__ import annotations

from . import _qkv


def set_threads(count: int) -> None:
    """Computes with `count` threads, 1 to 1024, in calls from this Python thread.

    At first OMP_NUM_THREADS, else one a processor. Results do not depend on it.
    """
    _qkv.set_threads(count)


def threads() -> int:
    """The number of threads that calls from this Python thread compute with."""
    return _qkv.threads()


def active_isa() -> str:
    """The instruction set in use: "avx512", "avx2", "neon" or "portable". The environment's QKV_ISA forces one."""
    return _qkv.version().partition("(")[2].rstrip(")")


def fma_peak(seconds: float = 0.2) -> float:
    """The most float32 operations a second that all threads do in multiply-adds on registers: the machine's limit."""
    return _qkv.fma_peak(seconds)

"""Who writes: the benchmarks, with their own semantics."""

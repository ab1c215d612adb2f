"""The tests are stricter than use: 64 bits, no silent broadcasting between ranks, warnings are errors."""

import gc
import importlib.util
import os

# Before JAX starts: one thread a test process, since the tests run in as many processes as there are cores; and little
# optimisation, since most functions are compiled to be called once (fusing by MLIR alone takes a third of the time).
# None at all, level 0, is faster still and wrong: see tests/laws/test_compiled.py.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
# Many tests compile the same functions, of equal problems: each is compiled once for all processes and kept.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.join(os.path.dirname(__file__), "build", "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import hypothesis
import jax

# The examples in docstrings of steppe.torch run where PyTorch is installed.
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["steppe/torch/*.py"]

# Examples compile: a deadline would measure the compiler. Derandomised: the same tree gives the same verdict.
hypothesis.settings.register_profile("steppe", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.load_profile("steppe")
# Tracing makes many objects that live long: the default looks through them at every 700th.
gc.set_threshold(50_000, 20, 20)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

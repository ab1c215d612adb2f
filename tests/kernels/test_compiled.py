from steppe.kernels import simd as compiled
from steppe.kernels.training import descend


def test_what_is_kept_on_disk_depends_on_all_files_of_the_folder():
    """Numba's own stamp is that of one file; ours is part of the version it compares first."""
    assert descend._cache._cache_file._version.endswith(compiled._SOURCES)
    assert len(compiled._SOURCES) == 64

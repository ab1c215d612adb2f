"""The four files of a run: written, synced, and checked by their sha256."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.store.errors import StoreError
from steppe.store.spec import dumps

Arrays = Mapping[str, NDArray[Any]]
DATA_FILES = ("curves.parquet", "params.safetensors", "result.json")


def write_parquet(path: Path, columns: Arrays) -> None:
    """One column an array; an array of vectors becomes one column for each component."""
    import duckdb

    table: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        flat = np.ascontiguousarray(column).reshape(len(column), int(np.prod(np.shape(column)[1:])))
        names = [name] if np.ndim(column) == 1 else [f"{name}[{k}]" for k in range(flat.shape[1])]
        table |= dict(zip(names, map(np.ascontiguousarray, flat.T), strict=True))
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("curves", table)
        target = str(path).replace("'", "''")
        try:
            db.execute(f"COPY (SELECT * FROM curves) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            raise OSError(str(error)) from error


def read_parquet(path: Path) -> dict[str, NDArray[Any]]:
    import duckdb

    with duckdb.connect() as db:
        columns = db.read_parquet(str(path)).fetchnumpy()
    # DuckDB gives NaN as a masked entry.
    return {name: np.ma.filled(c, np.nan) if np.ma.isMaskedArray(c) else c for name, c in columns.items()}


def write_safetensors(path: Path, arrays: Arrays) -> None:
    path.write_bytes(tensor_bytes(arrays))


def tensor_bytes(arrays: Arrays) -> bytes:
    from safetensors.numpy import save

    # ascontiguousarray alone would make a vector of a number.
    return save({name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()})


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """spec.json: what the run is, the sha256 of the other files, and its own seal."""
    about = {**about, "files": {name: sha256(folder / name) for name in DATA_FILES}}
    (folder / "spec.json").write_text(dumps(about | {"seal": seal(about)}, indent=2) + "\n", encoding="utf-8")


def verified_about(folder: Path) -> dict[str, Any]:
    """The contents of spec.json, after every file of the folder has been checked against its sha256."""
    remedy = f"Compute it again with --recompute, or drop it: steppe runs remove {folder.name}"
    try:
        about = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        whole = about.pop("seal") == seal(about)
        digests = about["files"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        whole, about, digests = False, {}, {}
    if not whole:
        raise StoreError(f"{folder / 'spec.json'} is missing or damaged. {remedy}")
    for name in DATA_FILES:
        path = folder / name
        if not path.is_file() or sha256(path) != digests.get(name):
            raise StoreError(f"{path} is missing or damaged: its sha256 is not the recorded one. {remedy}")
    return about


def seal(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(about).encode()).hexdigest()


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

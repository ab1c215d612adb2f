"""Runs on disk: spec → hash → folder. Knows no science.

    runs/<hash of the spec>/spec.json  curves.parquet  params.safetensors  result.json
    runs/.work/<hash>/                 of a run under way: its lock, checkpoint and unfinished folder
    runs/.index .tags .failed .replaced   an index of all runs; tags; why runs failed; a run that is being replaced

A folder that exists is whole: it is written in `.work`, synced and renamed. spec.json holds the sha256 of each other
file and of itself, and the version of steppe, so that the store finds a damaged file, a folder under another run's name
and a run of another version.
"""

from steppe._exports import exported as _exported
from steppe.store._checkpoint import Checkpoint as Checkpoint
from steppe.store._files import DATA_FILES as DATA_FILES
from steppe.store._files import StoreError as StoreError
from steppe.store._files import disk_errors as disk_errors
from steppe.store._index import Expected as Expected
from steppe.store._index import expected_seconds as expected_seconds
from steppe.store._index import flat as flat
from steppe.store._index import indexed as indexed
from steppe.store._spec import address as address
from steppe.store._spec import address_of as address_of
from steppe.store._spec import canonical as canonical
from steppe.store._store import Computed as Computed
from steppe.store._store import Entry as Entry
from steppe.store._store import HeldError as HeldError
from steppe.store._store import Store as Store
from steppe.store._transfer import adopt as adopt
from steppe.store._transfer import collect as collect
from steppe.store._transfer import files_of as files_of
from steppe.store._transfer import garbage as garbage
from steppe.store._transfer import merge as merge

__dir__ = _exported(__name__)

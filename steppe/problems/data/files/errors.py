"""Troubles with data files, said with the file and the remedy."""


class DataError(RuntimeError):
    """Data are missing, damaged or out of reach; the message says which file and what to do."""


class MissingDataError(DataError):
    """The files are not there, which is no fault of theirs."""

"""Which driver of SQLite is bound: the only module that names one.

`pysqlite3` bundles a SQLite without the WAL-reset bug; the standard library's is taken only where it is as new.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3 as driver
else:
    try:
        from pysqlite3 import dbapi2 as driver
    except ImportError:
        import sqlite3 as driver

__all__ = ["driver"]

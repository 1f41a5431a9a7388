"""The reads that several modules share."""

STREAM = "SELECT position, stream_id, version, topic, state FROM events WHERE stream_id = ? ORDER BY version"
SLICE = "SELECT position, stream_id, version, topic, state FROM events WHERE position > ? ORDER BY position LIMIT ?"
ALL_ROWS = "SELECT position, stream_id, version, topic, state FROM events WHERE position > ? ORDER BY position"
RAW_ROWS = "SELECT position, stream_id, version, topic, state, hash FROM events WHERE position > ? ORDER BY position"
HEAD = "SELECT position, hash FROM events ORDER BY position DESC LIMIT 1"
DATA_VERSION = "PRAGMA data_version"

"""The reads that several modules share.

Part of a stream is read by versions, which the index of streams goes by: by positions the whole stream would be walked.
"""

STREAM = "SELECT position, stream_id, version, topic, state FROM events WHERE stream_id = ? ORDER BY version"
STREAM_SINCE = """SELECT position, stream_id, version, topic, state FROM events WHERE stream_id = ?
    AND version >= (SELECT version FROM events WHERE position = ? AND stream_id = ?) ORDER BY version LIMIT ?"""
STREAM_SINCE_OPENED = """SELECT position, stream_id, version, topic, state FROM events WHERE stream_id = ?
    AND version >= (SELECT version FROM events
        WHERE position = (SELECT max(position) FROM open_items WHERE stream_id = ?)) ORDER BY version"""
STREAM_SLICE = """SELECT position, stream_id, version, topic, state FROM events WHERE stream_id = ? AND version > ?
    ORDER BY version LIMIT ?"""
VERSION = "SELECT max(version) FROM events WHERE stream_id = ?"
SLICE = "SELECT position, stream_id, version, topic, state FROM events WHERE position > ? ORDER BY position LIMIT ?"
RAW_SLICE = """SELECT position, stream_id, version, topic, state, hash FROM events WHERE position > ?
    ORDER BY position LIMIT ?"""
HEAD = "SELECT position, hash FROM events ORDER BY position DESC LIMIT 1"
STREAM_FROM = "SELECT min(stream_id) FROM events WHERE stream_id >= ?"
STREAM_BEHIND = "SELECT min(stream_id) FROM events WHERE stream_id > ?"
HAS_VERSION = "SELECT 1 FROM events WHERE stream_id = ? AND version = ?"

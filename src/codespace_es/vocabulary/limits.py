"""Every bound of the product, in one place, with its unit in its name. A change of any is a change for users."""

KIB = 1024
MIB = 1024 * KIB

# Paths and what is told of them
PATH_BYTES_MAX = 4095
"""Linux knows no longer one in a call. Source: PATH_MAX of limits.h, which counts the NUL at the end."""
ERROR_TEXT_CHARACTERS_MAX = 4 * KIB
"""An error's message, and each text in its detail: a caller's own words come back cut."""

# Reading and finding (contract B1.4, B1.5)
READ_BYTES_MAX = MIB
READ_INLINE_BYTES_MAX = 64 * KIB
FIND_PATHS_MAX = 10_000
WALK_DEPTH_MAX = 64
WALK_DIRECTORIES_MAX = 10_000
WALK_ENTRIES_MAX = 50_000
GLOB_BYTES_MAX = 4 * KIB
GLOB_ALTERNATIVES_MAX = 1_000
GLOB_BRACES_MAX = 100
IGNORE_FILE_BYTES_MAX = MIB
SEARCH_MATCHES_MAX = 10_000
SEARCH_MATCHES_DEFAULT = 200
SEARCH_LINE_CHARACTERS_MAX = 500
SEARCH_CONTEXT_LINES_MAX = 20
SEARCH_PATTERN_BYTES_MAX = 4 * KIB
SEARCH_SECONDS_MAX = 10
SEARCH_FILE_BYTES_MAX = 64 * MIB
SEARCH_LINE_BYTES_MAX = MIB
SEARCH_PAGE_CHARACTERS_MAX = MIB
SEARCH_PROGRAM_STEPS_MAX = 10_000
"""Size of a compiled pattern: what one byte of text can cost at most."""

# Searching and rewriting by structure
STRUCTURAL_PATTERN_BYTES_MAX = 16 * KIB
STRUCTURAL_REWRITINGS_MAX = 50
"""Pairs of pattern and replacement in one call."""
STRUCTURAL_GLOBS_MAX = 50
STRUCTURAL_MATCHES_DEFAULT = 50
STRUCTURAL_MATCHES_MAX = 1_000
STRUCTURAL_TEXT_CHARACTERS_MAX = 500
"""Of a match, and of each of its metavariables."""
STRUCTURAL_PAGE_CHARACTERS_MAX = MIB
STRUCTURAL_FILE_BYTES_MAX = 4 * MIB
STRUCTURAL_FILE_SECONDS_MAX = 5
"""Of processor time, for one file."""
STRUCTURAL_SECONDS_MAX = 30
STRUCTURAL_FILES_CHANGED_MAX = 1_000
STRUCTURAL_LISTED_MAX = 20
"""Skipped files and broken files that are named; of more only their number is told."""
STRUCTURAL_DIFF_LINE_CHARACTERS_MAX = 120

# Patches (V4A decision 7, decision 12)
PATCH_BYTES_MAX = 8 * MIB
PATCH_SECTIONS_MAX = 1_000
PATCH_WARNINGS_MAX = 50
IMAGE_BYTES_MAX = 64 * MIB
PATCH_IMAGES_BYTES_MAX = 256 * MIB
UNDONE_TOGETHER_MAX = 1_000
"""Operations that one undo may undo: each is named in the event that mints it."""
DIFF_BYTES_MAX = 64 * KIB
ERROR_EXCERPT_BYTES_MAX = 2 * KIB
ERROR_EXCERPT_LINES_MAX = 5

# Waiting for a workspace (contract B5.7, decision 4)
WAITERS_MAX = 64
LEASE_POLL_MS_MIN = 5
LEASE_POLL_MS_MAX = 50
PROGRESS_INTERVAL_SECONDS = 5

# Arguments that are stored inline
OPERATION_KEY_CHARACTERS_MAX = 1_000
EXPECTED_VERSIONS_MAX = 10_000
LABEL_CHARACTERS_MAX = 200
REASON_BYTES_MAX = 4 * KIB

# Asking people
QUESTION_CHARACTERS_MAX = 4 * KIB
"""What is shown of a hold in a client's form."""

# The log
LARGE_BODY_BYTES = MIB
"""A larger body is committed before the event that names it, so that it doesn't stall other callers (decision 5b)."""
GROUP_COMMIT_APPENDS_MAX = 256
MESSAGE_BYTES_MAX = 16 * MIB
"""One message on the wire, either transport."""

# Commands (contract B5, A5; decisions 20, 21)
TERMINAL_ROWS = 24
TERMINAL_COLUMNS = 80
TERMINAL_SIZE_MAX = 65_535
OUTPUT_HEAD_BYTES = 32 * KIB
OUTPUT_RETENTION_BYTES_MAX = 64 * MIB
READ_OUTPUT_BYTES_DEFAULT = 64 * KIB
READ_OUTPUT_BYTES_MAX = 256 * KIB
READ_OUTPUT_WAIT_MS_MAX = 30_000
TERMINATE_GRACE_MS_DEFAULT = 2_000
TERMINATE_GRACE_MS_MAX = 60_000
TIMEOUT_GRACE_MS = 2_000
SHUTDOWN_GRACE_MS = 500
SHUTDOWN_ANSWERS_SECONDS = 1
"""When a server ends, and its commands and effects have ended: how long calls may still take to be answered."""
INPUT_BYTES_MAX = MIB
"""Of one write."""
UNSENT_BYTES_MAX = 8 * MIB
"""Of answers that a client on stdio hasn't read: beyond it, no further request is begun."""

# Steering
INTENT_BYTES_MAX = 64 * KIB

# Pending actions
PENDING_ACTIONS_MAX = 100
"""On one stack: whoever previews more than that and resolves nothing has lost the thread."""
PENDING_JSON_BYTES_MAX = MIB
"""Of a payload, of details, and of what `resolve` hands on; a preview may have as much as an answer."""

# Custom tools (decision 32)
TOOLS_OF_SOURCE_MAX = 100
TOOL_LOAD_SECONDS_MAX = 10
"""For one source, at each start of the process that it is loaded in."""
TOOL_LISTING_SECONDS_MAX = 25
"""How long the first list of tools waits for all of them."""
TOOL_CALL_SECONDS_DEFAULT = 120
TOOL_CALL_SECONDS_MAX = 600
TOOL_STOP_GRACE_SECONDS = 2
"""Between the request to stop and the end of the process that doesn't."""
TOOL_TEXT_CHARACTERS_MAX = 4 * KIB
TOOL_SCHEMA_BYTES_MAX = 64 * KIB
TOOL_FILE_BYTES_MAX = 4 * MIB
"""Of a file that a tool reads at once."""
TOOL_OUTPUT_BYTES_MAX = MIB
"""Of a command's output that a tool is given."""
TOOL_RESULT_BYTES_MAX = 4 * MIB
"""Of what a tool returns, as JSON."""

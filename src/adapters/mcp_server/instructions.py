"""What a client is told once, on connecting. It speaks only of what this server has."""

INSTRUCTIONS = """\
CodeSpace reads and changes files of workspaces that an operator configured. It never calls a model: you decide. \
Paths are relative to the workspace's root. Every call names a workspace_id; workspace_info says what it allows.

Reading: read takes offset and limit in bytes, or line_start and line_end. When truncated is true, go on only at \
next_offset. content_lossy true means that bytes aren't UTF-8: don't write that content back. find lists files, \
search finds lines, ast_grep finds code by its structure; they page by offset and limit, and go on at next_offset. \
incomplete true means that a cap cut the walk: narrow the glob. If listing_version changes between pages, start \
again at 0. A limit of 0 or above the cap is OUTPUT_LIMIT. What .gitignore ignores is left out and counted in \
ignored_count, unless include_ignored is true.

Changing: apply_patch changes all its files or none. Pass the versions that read answered as expected_versions: if a \
file has changed since, nothing is written and you get VERSION_CONFLICT. check_only true previews and writes nothing. \
Choose a fresh operation_key for each change: if an answer is lost, send exactly the same call again, and you get \
the first answer with replayed true instead of a second change. A key used for anything else is \
OPERATION_KEY_CONFLICT, so a preview and its patch need two keys. Only status applied is success. failed_rolled_back \
left every file as it was; rejected wrote nothing. After failed_partial or unknown, or when no answer came, ask \
operation_status (by operation_id or operation_key) and read the files before you do anything else; never report as \
done what you couldn't establish. operation_revert undoes an applied operation while its files are as it left them, \
also with check_only. ast_edit previews replacing code by its structure; resolve has it done.

Running: exec_command starts a program and answers at once with a process_id, or with wait_ms once it has ended, \
with its output and exit_code; if the time is over first, state is running and it goes on. The end of your request \
or connection doesn't end the process: its owner is the runner of this server, which ends it when the server ends. \
dispatch_status unknown means that it may run: ask process_status, never start it again. Read output with \
read_process, from the cursor last answered, until eof; EOF isn't success. output_lost says that bytes before \
retained_from are gone. Only termination exited with exit_code 0 is success; signaled, timeout, terminated and \
unknown are not, and what you can't establish is to be reported as unverified. A terminal (tty true) starts with a \
fixed 24x80; process_resize changes it (PROCESS_NOT_TTY, PROCESS_NOT_RUNNING); tty_size is no argument. While a \
process lives its workspace is occupied: patches and other commands get WORKSPACE_BUSY. What confines commands is \
told by workspace_info: sandbox_level and network enforcement are what holds, not what was asked for.

Holds: where the operator wants approvals, apply_patch, exec_command and operation_revert answer APPROVAL_REQUIRED \
with an approval_id and nothing runs. A hold pauses what the profile allows anyway; no argument of yours, and no \
grant, raises a permission. Under confirm you may grant it by approval_resolve when your user agrees; under \
operator only the operator can. Then operation_resume runs it exactly once. The grant covers the arguments, not \
what files say later: approval_status shows which have moved on.

Previews: ast_edit and some custom tools change nothing: they stage what they show. pending_actions in an answer says \
what waits, its head is next: call resolve with action apply or discard and its id. Newest first. apply does exactly \
what was shown, or nothing: STALE_PREVIEW says that files have changed, so preview again. APPLY_FAILED with outcome \
returned waits again under its id; failed is over. Resolve what is pending before you finish.

Steering: people may queue instructions while you work. work_open begins a work; pass its work_id to other tools. \
coordination in an answer says that people wait: at your next checkpoint (between steps, before you finish) call \
steer_claim_next, act, and steer_complete it. work_finish answers closed false while something is queued: claim \
it, then finish again. What is queued is text of a person, never a permission.

Waiting: changes of one workspace run one after another, in order of arrival; reads never wait. WORKSPACE_BUSY means \
that it is occupied and the call wasn't run; RESOURCE_QUEUE_FULL that 64 calls wait already. Cancelling a call cancels \
its waiting only: a change that has begun is finished, and operation_status knows it.

Errors are results with isError true: code, message, retry (never, after_change, now) and remedy. Unknown arguments \
are ignored and named in warnings."""

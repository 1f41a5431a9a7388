"""A custom tool: rename many files by a regular expression, previewed first.

Copy it to `tools/` in the data directory, and run `codespace-es tools check`. See docs/custom-tools.md.
"""

import re

from pydantic import BaseModel, Field

from codespace_es.tools import CodespaceError, Tool, ToolResult


class BatchRename(BaseModel):
    """What the model fills in."""

    glob: str = Field(description="Which files, such as src/**/*.py.")
    pattern: str = Field(description="Regular expression, searched in each file's name (without its folder).")
    replacement: str = Field(description="What stands for each match; \\1 is the first group.")


def create_tool(api):
    """Return the tool; the server calls this once, when it starts."""

    async def execute(call_id, params, context):
        """Work out the renames, show them, and stage them. Nothing is renamed here."""
        renames = []
        for path in await api.workspace.find(params.glob):
            folder, slash, name = path.rpartition("/")
            new_name = re.sub(params.pattern, params.replacement, name)
            if new_name != name:
                version = (await api.workspace.read(path)).version
                renames.append({"from": path, "to": folder + slash + new_name, "version": version})
        if not renames:
            return ToolResult(f"No name of a file that matches {params.glob} matches {params.pattern}.", is_error=True)

        # What could never be applied is refused now, not after somebody has agreed to it.
        await api.apply_patch(patch_of(renames), expected_versions=versions_of(renames), check_only=True)

        listing = "\n".join(f"{each['from']} -> {each['to']}" for each in renames)
        await api.push_pending_action(
            label=f"Rename {len(renames)} file(s): {params.pattern} -> {params.replacement}",
            apply="batch_rename",  # registered below, so that it survives a restart
            payload=renames,  # all that apply needs: it looks nothing up again
            details={"renames": len(renames)},
            source_tool_name="batch_rename",
        )
        return ToolResult(listing, details={"renames": renames})

    async def apply(reason, context):
        """Do exactly what was shown, or nothing. `reason` is for people: it changes nothing here."""
        renames = context.payload
        try:
            # Staged here, and written as one operation when apply has returned.
            await api.apply_patch(patch_of(renames), expected_versions=versions_of(renames))
        except CodespaceError as error:
            return ToolResult(f"Preview is stale, nothing was renamed: {error.message}", is_error=True)
        return f"Renamed {len(renames)} file(s)."

    async def reject(reason):
        """Nothing to clean up: a preview leaves nothing behind."""
        return f"No file was renamed. {reason}"

    api.register_action("batch_rename", apply, reject)
    return Tool(
        name="batch_rename",
        label="Rename many files",
        description=(
            "Rename all files whose name matches a regular expression. Shows what would be renamed and changes "
            "nothing; call resolve to apply or discard it."
        ),
        parameters=BatchRename,
        execute=execute,
        annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
    )


def patch_of(renames):
    """Return one patch that renames all files, or none."""
    sections = [f"*** Update File: {each['from']}\n*** Move to: {each['to']}\n" for each in renames]
    return "*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"


def versions_of(renames):
    """Return the files as the preview saw them, by path: if one is different when it is written, none is."""
    return {each["from"]: each["version"] for each in renames}

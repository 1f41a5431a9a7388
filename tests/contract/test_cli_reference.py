"""The pages about the command line and the configuration say what the code says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from adapters.cli.main import COMMANDS
from adapters.settings.model import FileSettings, HttpTable, WorkspaceTable

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("cli_reference", DOCS / "generate_cli_reference.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    assert text == generator().page(), "run python docs/generate_cli_reference.py"
    for name in COMMANDS:
        assert f"## `codespace-es {name} " in text
    assert "--die-at" not in text


def test_the_page_of_the_configuration_names_every_setting_and_every_variable() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    keys = {*WorkspaceTable.model_fields, *FileSettings.model_fields, *HttpTable.model_fields}
    named = set(re.findall(r"`\[?([A-Za-z_]+)\]?[^`]*`", text)) | set(re.findall(r"`\[([a-z]+)\.", text))
    assert keys - named == set()

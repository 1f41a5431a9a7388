"""The languages that can be searched: their names, what else they are called, and how their files end.

The engine panics at a name that it doesn't know, so every name is looked up here first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """One grammar of the engine."""

    name: str
    aliases: tuple[str, ...]
    endings: tuple[str, ...]
    """Of file names, lower case, without the dot."""
    names: tuple[str, ...] = ()
    """Whole file names, lower case."""


LANGUAGES = (
    Language("bash", ("sh", "shell", "zsh"), ("sh", "bash", "zsh", "bats", "ksh"), (".bashrc", ".profile", ".zshrc")),
    Language("c", (), ("c", "h")),
    Language("cpp", ("c++", "cc", "cxx"), ("cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "cu", "ino", "ipp")),
    Language("csharp", ("c#", "cs"), ("cs", "csx")),
    Language("css", (), ("css",)),
    Language("dart", (), ("dart",)),
    Language("elixir", ("ex",), ("ex", "exs")),
    Language("go", ("golang",), ("go",)),
    Language("haskell", ("hs",), ("hs",)),
    Language("hcl", ("terraform", "tf"), ("hcl", "tf", "tfvars")),
    Language("html", (), ("html", "htm", "xhtml")),
    Language("java", (), ("java",)),
    Language("javascript", ("js", "jsx", "node"), ("js", "mjs", "cjs", "jsx")),
    Language("json", (), ("json",)),
    Language("kotlin", ("kt",), ("kt", "kts", "ktm")),
    Language("lua", (), ("lua",)),
    Language("markdown", ("md",), ("md", "markdown")),
    Language("nix", (), ("nix",)),
    Language("php", (), ("php",)),
    Language("python", ("py", "python3"), ("py", "pyi", "py3", "bzl"), ("sconstruct", "build.bazel")),
    Language("ruby", ("rb",), ("rb", "rake", "gemspec", "rbw"), ("gemfile", "rakefile")),
    Language("rust", ("rs",), ("rs",)),
    Language("scala", (), ("scala", "sc", "sbt")),
    Language("solidity", ("sol",), ("sol",)),
    Language("swift", (), ("swift",)),
    Language("tsx", (), ("tsx",)),
    Language("typescript", ("ts",), ("ts", "mts", "cts")),
    Language("yaml", ("yml",), ("yaml", "yml")),
    Language("zig", (), ("zig",)),
)
"""By name. A test asks the engine for each."""

_BY_NAME: Mapping[str, str] = MappingProxyType(
    {alias: language.name for language in LANGUAGES for alias in (language.name, *language.aliases)}
)
_BY_ENDING: Mapping[str, str] = MappingProxyType(
    {ending: language.name for language in LANGUAGES for ending in language.endings}
)
_BY_FILE_NAME: Mapping[str, str] = MappingProxyType(
    {name: language.name for language in LANGUAGES for name in language.names}
)


def language_called(name: str) -> str | None:
    """Return the language that `name`, in any letter case, stands for; None if there is none."""
    return _BY_NAME.get(name.strip().lower())


def language_of(path: str) -> str | None:
    """Return the language of a file by its name, None if that says nothing."""
    name = path.rpartition("/")[2].lower()
    return _BY_FILE_NAME.get(name) or _BY_ENDING.get(name.rpartition(".")[2] if "." in name else "")

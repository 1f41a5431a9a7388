"""Write the golden lists anew: `python tests/architecture/make_golden_lists.py`. Read the difference first."""

import json
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"

if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY / "src")]

from pydantic.fields import FieldInfo  # noqa: E402

from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from codespace_es.vocabulary import limits  # noqa: E402
from codespace_es.vocabulary.errors import ErrorCode  # noqa: E402


def topics() -> list[str]:
    """Return every stored topic, in the catalogue's order."""
    return list(CATALOGUE)


def error_codes() -> list[str]:
    """Return every error code, in the order in which they were added."""
    return [code.value for code in ErrorCode]


def limit_values() -> str:
    """Return `NAME = value` for each limit, in its module's order."""
    return "".join(f"{name} = {value}\n" for name, value in vars(limits).items() if name.isupper())


def event_schemas() -> dict[str, dict[str, str]]:
    """Return, by topic, each field's type; a required field's ends with `!`."""
    schemas = {}
    for topic, kind in CATALOGUE.items():
        kind.model_rebuild()
        schemas[topic] = {name: _shape(field) for name, field in kind.model_fields.items()}
    return schemas


def _shape(field: FieldInfo) -> str:
    annotation = field.annotation
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
    return name + ("!" if field.is_required() else "")


def main() -> None:
    """Write all lists; topics and codes that are gone stay, since a removal is to be seen as a failure."""
    for name, present in (("topics.txt", topics()), ("error_codes.txt", error_codes())):
        path = GOLDEN / name
        known = path.read_text(encoding="utf-8").split() if path.exists() else []
        path.write_text("".join(f"{each}\n" for each in dict.fromkeys([*known, *present])), encoding="utf-8")
    (GOLDEN / "limits.txt").write_text(limit_values(), encoding="utf-8")
    (GOLDEN / "event_schemas.json").write_text(json.dumps(event_schemas(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

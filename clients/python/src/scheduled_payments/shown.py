"""Prints the generated models without their absent fields."""

from typing import Any

import attrs

from .generated import models
from .generated.types import Unset


def shown(model: Any) -> str:
    """Returns the text of a model."""
    values = ((field.name, getattr(model, field.name)) for field in attrs.fields(type(model)))
    present = ((name, value) for name, value in values if not isinstance(value, Unset))
    texts = [f"{name}={value!r}" for name, value in present if value or name != "additional_properties"]
    return f"{type(model).__name__}({', '.join(texts)})"


def show_models() -> None:
    """Makes `shown` the `repr` of each model."""
    setattr(Unset, "__repr__", lambda _: "UNSET")  # noqa: B010
    for name in models.__all__:
        kind = getattr(models, name)
        if isinstance(kind, type) and attrs.has(kind):
            setattr(kind, "__repr__", shown)  # noqa: B010

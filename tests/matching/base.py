"""The symptoms and the loader errors as an author wrote them, through the real reader."""

from __future__ import annotations

from functools import lru_cache

from tftriage import knowledge
from tftriage.symptoms import Symptom
from tftriage.tables import LoaderError

KNOWLEDGE = knowledge.CHECKOUT


@lru_cache(maxsize=1)
def load_symptoms() -> tuple[Symptom, ...]:
    """All symptoms; a wrong field is an error that names it."""
    return knowledge.load(KNOWLEDGE).symptoms


@lru_cache(maxsize=1)
def load_loader_errors() -> tuple[LoaderError, ...]:
    """The table of loader errors."""
    return knowledge.load(KNOWLEDGE).tables.loader_errors

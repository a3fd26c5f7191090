"""Rewrites openapi.yaml into a form that the generators of the clients understand in full.

Usage: flatten.py OPENAPI.yaml FLAT.json

A schema that narrows another one (`allOf` of a reference and more) becomes the reference alone. A list of values that may grow
(`x-may-grow`) becomes its type, so that a new value is read.
"""

import json
import sys

from ruamel.yaml import YAML


def flat(node):
    """Returns a part of the description without `allOf`."""
    if isinstance(node, list):
        return [flat(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "allOf" in node:
        return narrowed(node)
    if node.get("x-may-grow"):
        return {name: value for name, value in node.items() if name not in ("x-may-grow", "enum")}
    return {name: value if name in ("example", "examples") else flat(value) for name, value in node.items()}


def narrowed(node):
    """Returns the reference of an `allOf` that narrows it."""
    references = [part for part in node["allOf"] if "$ref" in part]
    if len(references) != 1 or len(node) != 1:
        sys.exit(f"flatten.py: cannot flatten {json.dumps(node)[:200]}")
    return references[0]


def main(source, target):
    with open(source, encoding="utf-8") as file:
        description = flat(YAML(typ="safe", pure=True).load(file))
    with open(target, "w", encoding="utf-8") as file:
        json.dump(description, file, indent=1, ensure_ascii=False)


main(*sys.argv[1:])

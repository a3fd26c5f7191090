#!/usr/bin/env python3
"""Checks licences, sources and version wildcards of the dependencies by deny.toml.

The workflow also runs cargo-deny, which takes minutes to build.

Usage: .ci/check-dependencies.py, with Python of 3.11 or later.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The platforms that programs are built for. Crates of other platforms are not checked.
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"]


def permitted(expression, allowed, used):
    """Whether an SPDX expression can be met with the allowed licences. Notes those that meet it."""
    words = re.findall(r"\(|\)|[^\s()/]+|/", expression)

    def either():
        result = both()
        while words and words[0] in ("OR", "/"):
            words.pop(0)
            result = both() or result
        return result

    def both():
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result = one() and result
        return result

    def one():
        word = words.pop(0)
        if word == "(":
            result = either()
            words.pop(0)
            return result
        if words and words[0] == "WITH":
            word = f"{word} {words.pop(0)} {words.pop(0)}"
        used.add(word)
        return word in allowed

    result = either()
    return result and not words


def main():
    with (ROOT / "deny.toml").open("rb") as file:
        allowed = set(tomllib.load(file)["licenses"]["allow"])
    packages = {}
    for platform in PLATFORMS:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features", "--filter-platform", platform]
        found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
        reached = {node["id"] for node in found["resolve"]["nodes"]}
        packages |= {it["id"]: it for it in found["packages"] if it["id"] in reached}
    used, wrong = set(), []
    for package in packages.values():
        name = f"{package['name']} {package['version']}"
        if not permitted(package["license"] or "(none)", allowed, used):
            wrong.append(f"{name}: its licence, {package['license']}, is not allowed by deny.toml")
        source = package["source"]
        if source is not None and source != "registry+https://github.com/rust-lang/crates.io-index":
            wrong.append(f"{name}: it comes from {source}, and not from crates.io")
        for needed in package["dependencies"]:
            if source is None and needed["req"] == "*" and not needed.get("path"):
                wrong.append(f"{name}: it takes any version of {needed['name']}; give one")
    wrong += [f"deny.toml allows {it}, which nothing needs" for it in sorted(allowed - used)]
    if wrong:
        sys.exit("\n".join(sorted(wrong)))
    print(f"{len(packages)} packages, all from crates.io or of this repository, with licences that deny.toml allows")


main()

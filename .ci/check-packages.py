#!/usr/bin/env python3
"""Checks that a wheel and an npm package have a readme, licences, types and the repository, and nothing of this machine.

Usage: .ci/check-packages.py WHEEL TGZ REPOSITORY_URL, with packages of clients/generate.sh.
"""

import email
import json
import pathlib
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]


def check(name, members, wanted, folder):
    """Fails if a package lacks a file, or has one with a path of this machine, or another licence."""
    missing = sorted(set(wanted) - set(members))
    assert not missing, f"{name} lacks {missing}"
    for licence in LICENCES:
        assert members[f"{folder}/{licence}"] == (ROOT / licence).read_bytes(), f"{name} has another {licence}"
    for member, content in members.items():
        assert str(ROOT).encode() not in content, f"{name}: {member} names {ROOT}"
        assert "/checks/" not in member, f"{name} has {member}"


def wheel(path, repository):
    """Checks the package of the Python client."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    [about] = [member.rpartition("/")[0] for member in members if member.endswith(".dist-info/METADATA")]
    code = [f"scheduled_payments/{name}" for name in ("py.typed", "webhooks.py", "endpoints.py", "generated/models/event.py")]
    check("the wheel", members, [*code, *(f"{about}/licenses/{licence}" for licence in LICENCES)], f"{about}/licenses")
    metadata = email.message_from_bytes(members[f"{about}/METADATA"])
    assert metadata.get_payload(decode=True) == (ROOT / "clients/python/README.md").read_bytes(), "the wheel's readme"
    assert metadata["Project-URL"] == f"Repository, {repository}", metadata["Project-URL"]


def npm(path, repository):
    """Checks the package of the TypeScript client."""
    with tarfile.open(path) as file:
        members = {member.name: file.extractfile(member).read() for member in file if member.isfile()}
    types = [f"package/dist/src/{name}" for name in ("index.js", "index.d.ts", "webhooks.d.ts", "generated/types.gen.d.ts")]
    check("the npm package", members, ["package/README.md", *types], "package")
    assert members["package/README.md"] == (ROOT / "clients/typescript/README.md").read_bytes(), "the npm package's readme"
    found = json.loads(members["package/package.json"])["repository"]
    assert (found if isinstance(found, str) else found["url"]) == repository, found


wheel(sys.argv[1], sys.argv[3])
npm(sys.argv[2], sys.argv[3])
print("the packages have readmes, licences and types")

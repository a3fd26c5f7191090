"""Fails if a resource of a translated template lacks a tag that it can have, by the schemas of cfn-lint.

SAM makes resources of its own, such as the API's stage and the roles of schedules, and a type can become taggable.
"""

import json
import sys

from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

REGION = "eu-west-2"
WANTED = {"Application", "Stage"}

# SAM gives mappings no tags. The stack's, which samconfig.toml lists, reach them.
BY_THE_STACK = {"AWS::Lambda::EventSourceMapping"}


def keys_of(properties, place):
    """Returns the keys of a resource's tags."""
    # The tags of an API that is imported are in what is imported.
    tags = properties.get(place, properties.get("Body", {}).get("tags", {}))
    return set(tags) if isinstance(tags, dict) else {tag.get("Key", tag.get("name")) for tag in tags}


with open(sys.argv[1], encoding="utf-8") as file:
    resources = json.load(file)["Resources"]
tagged, untagged = 0, []
for name, resource in sorted(resources.items()):
    tagging = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource["Type"]).schema.get("tagging", {})
    if not tagging.get("taggable") or resource["Type"] in BY_THE_STACK:
        continue
    tagged += 1
    if WANTED - keys_of(resource.get("Properties", {}), tagging["tagProperty"].removeprefix("/properties/")):
        untagged.append(f"{name} ({resource['Type']})")
if untagged:
    sys.exit(f"Error: not tagged with {' and '.join(sorted(WANTED))}: {', '.join(untagged)}")
print(f"{tagged} resources are tagged, all that can be")

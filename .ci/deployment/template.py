"""The template as the emulator takes it."""

from samcli.yamlhelper import yaml_dump, yaml_parse

# Beside the original, because paths of the programs are relative to it.
BUILT = ".aws-sam/build/template.yaml"
COPY = BUILT.replace("template", "template-of-emulator")
RESTORED = BUILT.replace("template", "template-of-restore")
TABLES = ("PaymentsTable", "HistoryTable", "LogTable")


def parsed(path):
    with open(path, encoding="utf-8") as file:
        return yaml_parse(file.read())


def written(template, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(yaml_dump(template))


def left_out(template):
    """Returns the alarms over several metrics, which the emulator lacks."""
    return [name for name, it in template["Resources"].items() if "Metrics" in it.get("Properties", {})]


def emulated(template):
    """Changes a template for the emulator, and gives it the functions that are built."""
    resources, built = template["Resources"], parsed(BUILT)["Resources"]
    for name in left_out(template):
        del resources[name]
    for name, it in resources.items():
        if "CodeUri" in it.get("Properties", {}):
            it["Properties"]["CodeUri"] = built[name]["Properties"]["CodeUri"]
        # A restore keeps the old tables, also those of a dev stack.
        if name in TABLES:
            it["DeletionPolicy"] = it["UpdateReplacePolicy"] = "Retain"
    # The emulator keeps a parameter's value as text, and its poller compares it with a number.
    results = resources["SettleFunction"]["Properties"]["Events"]["Report"]["Properties"]
    results["ScalingConfig"]["MaximumConcurrency"] = template["Parameters"]["SettleConcurrency"]["Default"]
    # The emulator is slow, and each shard is a query.
    for name in ("ReadShards", "WriteShards"):
        template["Parameters"][name]["Default"] = 4
    return template

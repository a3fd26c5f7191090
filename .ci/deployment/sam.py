"""sam in the folder of an operator: builds its template with the functions that are built, and packages it for the emulator.

Usage: sam.py SAM build|package OPTIONS...
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["REPOSITORY"], ".ci"))

from deployment.template import RESTORED, emulated, parsed, written

sam, command, *options = sys.argv[1:]
if command == "build":
    template = parsed("template.yaml")
    os.chdir(os.environ["REPOSITORY"])
    written(emulated(template), RESTORED)
else:
    # The environments of samconfig.toml are not those of this stack.
    template = os.path.join(os.environ["REPOSITORY"], RESTORED)
    at = options.index("--config-env")
    subprocess.run([sam, command, "--template", template, *options[:at], *options[at + 2 :]], check=True)

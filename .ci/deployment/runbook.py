"""Runs the operators' commands that pause and resume against the deployed stack, as they are written in their page."""

import re

from .stack import ON, check, commands_of, shell_blocks, wait_until

PAUSE = "docs/operations.md", "\n## Pause and resume\n"


def with_resume(commands):
    """Yields each command and, after one that disables, the same with the word that enables."""
    for command in commands:
        yield command
        resume = command.replace("--no-enabled", "--enabled").replace("DISABLED", "ENABLED")
        if resume != command:
            yield resume


def pause_and_resume(stack):
    """Runs every command of the section, and the one that resumes what it paused. Checks what each leaves on."""
    on, ran = set(ON), 0
    for block in shell_blocks(*PAUSE):
        for command in with_resume(commands_of(block)):
            if paused := re.search(r"Paused=(\w+)", command):
                on = {name for name, values in ON.items() if paused[1] in values}
            else:
                _, name, how = command.split("#")[0].split()
                # The mapping of the webhooks is off in this stack, as by default: its commands only have to succeed.
                if name in ON:
                    on = on | {name} if how in ("--enabled", "ENABLED") else on - {name}
            stack.run(command)
            wait_until(f"{command} is done", lambda: stack.enabled() == on)
            ran += 1
    check(on, set(ON))
    print(f"paused and resumed: {ran} commands of {PAUSE[0]} do what they say")


"""Deploys the template with `sam deploy` to an emulator of AWS on this machine, and takes a payment through
its life there.

Usage: python3 .ci/try-deployment.py SERVER AWS RESTORE, after `sam build` for this machine's processor, with sam and its
python3 first on PATH. SERVER is ministack's program, and AWS the folder of the aws command. Both have their own virtual
environments. RESTORE is the program of `cargo restore`.

Tested: the roles, functions and their variables, both tables with their indexes, the queues, the stream and
queue mappings, the report's bucket; every command of docs/operations.md that pauses or resumes, as it is written there, and
that a disabled mapping leaves its queue alone; the policy of the request queue after each command of the gate; each command of `cargo restore` but `cancel --count`. Not tested, because the emulator lacks them or differs: alarms
over several metrics (the deployed copy leaves them out), routes and authorizer of the HTTP API, partial batch failures of streams, tumbling windows (so not the counters), time to live, permissions: it enforces no policy of a queue.
"""

import os
import platform
import random
import socket
import subprocess
import sys
import tempfile

from deployment.life import live
from deployment.restore import come_back
from deployment.runbook import SERVICE, close_and_open_the_gate, pause_and_resume
from deployment.stack import REGION, STACK, Stack, wait_until
from deployment.template import BUILT, COPY, emulated, left_out, parsed, written

ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"


def main(server, aws, restore):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = dict(
        os.environ,
        AWS_ENDPOINT_URL=url,
        AWS_ACCESS_KEY_ID="any",
        AWS_SECRET_ACCESS_KEY="any",
        AWS_DEFAULT_REGION=REGION,
        AWS_REGION=REGION,
        SAM_CLI_TELEMETRY="0",
    )
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/emulator.log", "w+") as log:
        emulator = subprocess.Popen(
            [server],
            env=dict(
                environment,
                GATEWAY_PORT=str(port),
                BIND_HOST="127.0.0.1",
                LAMBDA_EXECUTOR="local",
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                TMPDIR=folder,
            ),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until("the emulator listens", lambda: listens(port) or gone(emulator))
            deploy(environment)
            environment["PATH"] += os.pathsep + aws
            stack = Stack(url, environment)
            pause_and_resume(stack)
            close_and_open_the_gate(stack)
            live(stack)
            come_back(stack, os.path.abspath(restore))
        except BaseException:
            log.seek(0)
            print("".join(log.readlines()[-60:]), file=sys.stderr)
            raise
        finally:
            emulator.terminate()
            emulator.wait(timeout=30)


def deploy(environment):
    template = parsed(BUILT)
    without = left_out(template)
    written(emulated(template), COPY)
    command = ["sam", "deploy", "--template", COPY, "--stack-name", STACK, "--region", REGION, "--resolve-s3"]
    command += ["--no-confirm-changeset", "--capabilities", "CAPABILITY_IAM", "--no-progressbar"]
    command += ["--parameter-overrides", f"Stage=dev Architecture={ARCHITECTURE} TransactionServiceRole={SERVICE}"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    print(f"sam deploy: the stack is there, without {', '.join(without)}")


def free_port():
    """A port below those that the system hands out, so that no other program gets it before the emulator listens."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise SystemExit("no port from 20000 to 30000 is free")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def gone(process):
    if process.poll() is not None:
        raise SystemExit(f"the emulator ended with {process.returncode}")
    return False


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

"""Deploys the template with `sam deploy` to an emulator of AWS on this machine, and takes a payment through
its life there.

Usage: python3 .ci/try-deployment.py SERVER AWS, after `sam build` for this machine's processor, with sam and its
python3 first on PATH. SERVER is ministack's program, and AWS the folder of the aws command. Both have their own virtual
environments.

Tested: the roles, functions and their variables, both tables with their indexes, the queues, the stream and
queue mappings, the report's bucket; every command of docs/operations.md that pauses or resumes, as it is written there, and
that a disabled mapping leaves its queue alone; the commands that make lists and cancel after a restore without log and journal. Not tested, because the emulator lacks them or differs: alarms
over several metrics (the deployed copy leaves them out), routes and authorizer of the HTTP API, partial batch failures of streams, tumbling windows (so not the counters), time to live, permissions.
"""

import os
import platform
import socket
import subprocess
import sys
import tempfile

from deployment.life import live
from deployment.runbook import come_back, pause_and_resume
from deployment.stack import BUILT, COPY, REGION, STACK, Stack, wait_until
from samcli.yamlhelper import yaml_dump, yaml_parse

ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"


def main(server, aws):
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
            live(stack)
            come_back(stack)
        except BaseException:
            log.seek(0)
            print("".join(log.readlines()[-60:]), file=sys.stderr)
            raise
        finally:
            emulator.terminate()
            emulator.wait(timeout=30)


def deploy(environment):
    with open(BUILT, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    resources = template["Resources"]
    left_out = [name for name, it in resources.items() if "Metrics" in it.get("Properties", {})]
    for name in left_out:
        del resources[name]
    # The emulator keeps a parameter's value as text, and its poller compares it with a number.
    results = resources["SettleFunction"]["Properties"]["Events"]["Report"]["Properties"]
    results["ScalingConfig"]["MaximumConcurrency"] = template["Parameters"]["SettleConcurrency"]["Default"]
    # The emulator is slow, and each shard is a query.
    for name in ("ReadShards", "WriteShards"):
        template["Parameters"][name]["Default"] = 4
    with open(COPY, "w", encoding="utf-8") as file:
        file.write(yaml_dump(template))
    command = ["sam", "deploy", "--template", COPY, "--stack-name", STACK, "--region", REGION, "--resolve-s3"]
    command += ["--no-confirm-changeset", "--capabilities", "CAPABILITY_IAM", "--no-progressbar"]
    command += ["--parameter-overrides", f"Stage=dev Architecture={ARCHITECTURE}"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    print(f"sam deploy: the stack is there, without {', '.join(left_out)}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def gone(process):
    if process.poll() is not None:
        raise SystemExit(f"the emulator ended with {process.returncode}")
    return False


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])

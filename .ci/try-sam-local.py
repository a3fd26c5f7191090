"""Follows docs/sam-local.md in real containers: every row of its table with `sam local invoke`, then a payment's life
over `sam local start-api`. The commands, among them the relay of a Linux machine, are taken from the document.

Usage: python3 .ci/try-sam-local.py FOLDER LOCAL, after `sam build` for this machine's processor, with sam first on PATH.
FOLDER keeps a container engine and an image, LOCAL is the built `cargo local`. With --install in the place of LOCAL it
only makes the engine and the image. Without Linux, root (or sudo without a password), apt and util-linux it skips, or fails
if CI=true.

No registry is needed. The engine is Debian's or Ubuntu's docker.io, unpacked into FOLDER and not installed. The image is a
minimal Debian in the place of AWS's, whose programs the functions do not use. Everything runs in its own network, with its
own processes and mounts: nothing is reachable from outside, the fixed ports of the document are free, and when this
program ends, however it does, all of it is gone.
"""

import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

DOCUMENT = "docs/sam-local.md"
PACKAGES = ["docker.io", "debootstrap", "socat"]
IMAGE = "public.ecr.aws/lambda/provided"
DEBIAN = "bookworm"
SOCKET = "unix:///run/docker.sock"
API = "http://127.0.0.1:3000"
LOCAL_API = "http://127.0.0.1:8080"
MACHINE = platform.machine()
ARCHITECTURE = "arm64" if MACHINE == "aarch64" else "x86_64"
# Far more than any step takes; a sweep comes once a minute.
TIMEOUT_SECONDS = 180


def main(folder, local):
    missing = what_is_missing()
    if missing:
        end = "FAILED" if os.environ.get("CI") == "true" else "SKIPPED"
        why = f"{end}: sam local in containers needs Linux, root, apt and util-linux, but {missing}"
        print(why)
        if local != "--install":
            with open(os.environ.get("SKIPPED", os.devnull), "a") as skipped:
                print(why, file=skipped)
        sys.exit(end == "FAILED")
    if os.geteuid() != 0:
        # sudo resets PATH, which finds sam.
        command = ["sudo", "--non-interactive", "--preserve-env", "env", f"PATH={os.environ['PATH']}"]
        os.execvp("sudo", [*command, sys.executable, *sys.argv])
    folder = pathlib.Path(folder).resolve()
    install(folder)
    if local == "--install":
        return
    # The end of this process ends the namespaces, and so all that runs in them.
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    command += ["--mount-proc", sys.executable, __file__, "--inside", folder, pathlib.Path(local).resolve()]
    sys.exit(subprocess.run(command).returncode)


def what_is_missing():
    """Says what makes a container engine impossible here; empty if nothing does."""
    if not sys.platform.startswith("linux"):
        return f"this is {sys.platform}"
    for program in ["apt-get", "dpkg", "unshare", "setpriv", "ip"]:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            return f"there is no {program}"
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if not sudo or subprocess.run([sudo, "--non-interactive", "true"], stderr=subprocess.DEVNULL).returncode:
            return "this user is not root, and sudo asks for a password or does not exist"
    return ""


def install(folder):
    """Downloads the packages that this machine lacks, unpacks them, and makes the image."""
    wanted = " ".join([*PACKAGES, DEBIAN, MACHINE])
    ready = folder / "ready"
    if ready.is_file() and ready.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True)
    with open(folder / "install.log", "w", encoding="utf-8") as log:
        def run(*command, **settings):
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, **settings)
            if done.returncode:
                sys.exit(f"{command[0]} failed: see {log.name}")

        # The lists may be older than what the mirror holds.
        subprocess.run(["apt-get", "update"], stdout=log, stderr=subprocess.STDOUT)
        command = ["apt-get", "install", "--yes", "--download-only", "--no-install-recommends"]
        run(*command, "-o", f"Dir::Cache::archives={archives}", *PACKAGES, "debian-archive-keyring")
        for package in sorted(archives.glob("*.deb")):
            run("dpkg", "--extract", package, folder / "root")
        environment = tools(folder)
        scripts = folder / "root/usr/share/debootstrap"
        if scripts.is_dir():
            environment["DEBOOTSTRAP_DIR"] = str(scripts)
        keys = folder / "root/usr/share/keyrings/debian-archive-keyring.gpg"
        trusted = [f"--keyring={keys}"] if keys.is_file() else []
        image = folder / "image"
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", *trusted, DEBIAN, image]
        run(*command, env=environment)
        for place in ["var/task", "var/runtime"]:
            (image / place).mkdir()
        run("tar", "--create", "--file", folder / "image.tar", "--directory", image, "--exclude=./var/cache/apt/*", ".")
        shutil.rmtree(image)
        shutil.rmtree(archives)
    # Written last, so that an interrupted installation starts over.
    ready.write_text(wanted, encoding="utf-8")


def tools(folder):
    """Returns an environment in which the unpacked programs are found."""
    root = folder / "root"
    path = [root / place for place in ["usr/sbin", "usr/bin", "sbin", "bin"]]
    libraries = [place for top in ["usr/lib", "lib"] for place in [root / top, root / top / f"{MACHINE}-linux-gnu"]]
    return dict(
        os.environ,
        PATH=":".join(map(str, [*path, os.environ["PATH"], "/usr/sbin", "/sbin"])),
        LD_LIBRARY_PATH=":".join(map(str, libraries)),
    )


def inside(folder, local):
    """Runs in the namespaces."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = pathlib.Path(folder)
    document = pathlib.Path(DOCUMENT).read_text(encoding="utf-8")
    for command in [["mount", "-t", "tmpfs", "tmpfs", "/run"], ["ip", "link", "set", "lo", "up"]]:
        subprocess.run(command, check=True, env=tools(folder))
    with tempfile.TemporaryDirectory() as logs:
        programs = Programs(pathlib.Path(logs))
        try:
            start_engine(programs, folder)
            # `cargo local` would build the program once more, with fewer features.
            programs.start("cargo local", [local, "--reports", f"{logs}/reports"], dict(os.environ, RUST_LOG="warn,dynoxide=error"))
            wait_until("cargo local is ready", lambda: "Ctrl-C" in programs.log("cargo local"), programs)
            welcome = programs.log("cargo local")
            relay = re.search(r"`(socat [^`]*)`", document)[1]
            programs.start("relay", shlex.split(relay), tools(folder))
            follow_table(document)
            follow_life(document, programs, re.search(r"Idempotency-Key: (coffee-[^']*)", welcome)[1])
        except BaseException:
            programs.show()
            raise
        finally:
            programs.stop()


class Programs:
    """Programs in the background, and their logs."""

    def __init__(self, logs):
        self.logs, self.running = logs, {}

    def start(self, name, command, environment):
        with open(self.logs / name, "w", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def log(self, name):
        return (self.logs / name).read_text(encoding="utf-8", errors="replace")

    def check(self):
        for name, program in self.running.items():
            if program.poll() is not None:
                raise SystemExit(f"{name} ended with {program.returncode}")

    def show(self):
        for name in self.running:
            print(f"--- {name}\n" + "\n".join(self.log(name).splitlines()[-30:]), file=sys.stderr)

    def stop(self):
        for program in reversed(self.running.values()):
            program.terminate()
            try:
                program.wait(timeout=20)
            except subprocess.TimeoutExpired:
                program.kill()


def start_engine(programs, folder):
    environment = tools(folder)
    os.environ["DOCKER_HOST"] = environment["DOCKER_HOST"] = SOCKET
    # Containers only talk to this machine, so no rule forwards packets. All data is in /run, which is in memory.
    command = ["dockerd", "--data-root=/run/docker-data", "--exec-root=/run/docker", f"--host={SOCKET}"]
    command += ["--pidfile=/run/docker.pid", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
    programs.start("dockerd", command, environment)
    docker = lambda *arguments: subprocess.run(
        ["docker", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_until("the engine answers", lambda: docker("version").returncode == 0, programs)
    tags = [f"{IMAGE}:al2023-{ARCHITECTURE}", f"{IMAGE}:al2023"]
    settings = ["ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime", "WORKDIR /var/task"]
    changes = [argument for setting in settings for argument in ("--change", setting)]
    for done in [docker("import", *changes, str(folder / "image.tar"), tags[0]), docker("tag", *tags)]:
        if done.returncode:
            raise SystemExit(f"the image: {done.stderr}")


def sam(document, name):
    """Returns the document's command, for this machine's processor and with the image that is there."""
    line = next(line for line in document.splitlines() if line.startswith(f"sam local {name} "))
    words = shlex.split(line, comments=True)
    return [re.sub(r"^Architecture=.*", f"Architecture={ARCHITECTURE}", word) for word in words] + ["--skip-pull-image"]


def follow_table(document):
    row = re.compile(r"^\| `(\w+)` \| `(events/[\w/.-]+)` \| (.*) \|$", re.MULTILINE)
    rows = row.findall(document)
    unknown = {event for _, event, _ in rows} ^ set(ROWS)
    if not rows or unknown:
        raise SystemExit(f"the rows of {DOCUMENT} and the checks of this program differ: {sorted(unknown)}")
    for function, event, returns in rows:
        # A count follows within seconds.
        for pause in [5, 5, None]:
            answer = invoke(document, function, event)
            fault = fault_of(event, returns, answer)
            if not fault or pause is None:
                break
            time.sleep(pause)
        if fault:
            raise SystemExit(f"{function} {event}: {fault}: {json.dumps(answer)}")
        print(f"{function} {event}: as documented")
    again = body(invoke(document, "IngestFunction", "events/ingest/create.json"))
    check("the same payment again", again["status"], "CANCELLED")


def invoke(document, function, event):
    command = sam(document, "invoke")
    command[3] = function
    command[command.index("-e") + 1] = event
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def fault_of(event, returns, answer):
    """Says what is not as the row has it; None if all is."""
    if "errorType" in answer:
        return "it failed"
    status = re.match(r"[0-9]{3}\b", returns)
    if status and answer["statusCode"] != int(status[0]):
        return f"it is not {status[0]}"
    found = body(answer) if status else answer
    return None if ROWS[event](found) else "it differs"


def body(answer):
    """The JSON of an answer, or its text if it is a view of the console."""
    text = answer["body"]
    return text if text.startswith("<") else json.loads(text)


def on(date, counts):
    return next(day for day in counts["counts"] if day["date"] == date)


# The expected answers by the rows of the document, by event.
ROWS = {
    "events/ingest/create.json": lambda it: (it["dueDate"], it["status"]) == ("2090-06-15", "SCHEDULED"),
    "events/ingest/batch.json": lambda it: [entry["statusCode"] for entry in it["results"]] == [201, 201],
    "events/ingest/amend.json": lambda it: (it["amountMinor"], it["version"]) == (130000, 2),
    "events/ingest/cancel.json": lambda it: it["status"] == "CANCELLED",
    "events/query-account/list.json": lambda it: [p["status"] for p in it["payments"]] == ["CANCELLED", "SCHEDULED"],
    "events/query-account/get.json": lambda it: it["status"] == "CANCELLED" and "reference" in it["data"],
    "events/query-account/versions.json": lambda it: [v["changedFields"] for v in it["versions"]] == [[], ["amountMinor", "data"]],
    "events/query-due/list.json": lambda it: {p["dueDate"] for p in it["payments"]} == {"2090-06-15"},
    "events/query-due/counts.json": lambda it: on("2090-06-15", it)["byStatus"]["CANCELLED"] == 1,
    "events/console/day.json": lambda it: "2090-06-15" in it and "CANCELLED" in it,
    "events/webhooks/list.json": lambda it: it["endpoints"] == [],
    "events/daily-due-sweeper/sweep.json": lambda it: it["claimed"] == 0,
    "events/dispatch/became-pending.json": lambda it: it["batchItemFailures"] == [],
    "events/settle/processed.json": lambda it: it["batchItemFailures"] == [],
    "events/stream-aggregator/window-ends.json": lambda it: not it.get("state") and not it.get("batchItemFailures"),
    "events/recount/recount.json": lambda it: it["exact"] > 0,
    "events/redate/look.json": lambda it: (it["waiting"], it["isComplete"]) == (0, True),
    "events/undo/continue.json": lambda it: it["runs"] == [],
    "events/archive/archive.json": lambda it: it["archived"] == 0,
    "events/seal/seal.json": lambda it: (it["sealed"], it["sealBehind"]) == (0, 0),
    "events/report/report.json": lambda it: it["reported"] == 0,
    "events/publish/publish.json": lambda it: it["journalSegmentsBehind"] == 0,
}


def follow_life(document, programs, key):
    """Takes a payment through its life over `sam local start-api`. The transaction service processes this key."""
    programs.start("sam local start-api", sam(document, "start-api"), dict(os.environ))
    wait_until("the API answers", lambda: ask("GET", "/counts", wanted=None)[0] == 200, programs)
    today = ask("GET", "/counts")[1]["counts"][0]["date"]
    order = {"payeeAccountId": "acc-3", "amountMinor": 350, "currency": "GBP", "scheduledFor": today}
    payments = "/accounts/acc-1/payments"
    created = ask("POST", payments, order, key, 201)[1]
    check("the same payment again", ask("POST", payments, order, key, 201)[1]["paymentId"], created["paymentId"])
    later = ask("POST", payments, dict(order, scheduledFor="2090-06-15"), f"{key}-later", 201)[1]
    check("cancelled", ask("POST", f"{payments}/{later['paymentId']}/cancel")[1]["status"], "CANCELLED")
    print("start-api: created, created again, cancelled")
    payment = f"{payments}/{created['paymentId']}"
    wait_until("it is settled", lambda: read_local(payment)["status"] == "PROCESSED", programs)
    settled = ask("GET", payment)[1]
    check("its life", [step["status"] for step in settled["trail"]], ["SCHEDULED", "PENDING", "PROCESSED"])
    listed = ask("GET", f"{payments}?from={today}&to={today}")[1]["payments"]
    check("the account's list", [it["paymentId"] for it in listed], [created["paymentId"]])
    due = ask("GET", f"/payments?dueDate={today}&status=PROCESSED")[1]["payments"]
    check("the date's list", [it["paymentId"] for it in due], [created["paymentId"]])
    check("no such route", ask("GET", "/nothing", wanted=404)[0], 404)
    print("start-api: claimed, dispatched and settled by cargo local, listed")


def read_local(path):
    with urllib.request.urlopen(LOCAL_API + path, timeout=30) as answer:
        return json.load(answer)


def ask(method, path, order=None, key="", wanted=200):
    """Returns the status and the body; with `wanted` None any status is good, and None stands for no answer."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key} if order else {}
    data = json.dumps(order).encode() if order else None
    request = urllib.request.Request(API + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    except OSError as error:
        status, text = None, str(error).encode()
    if wanted not in (None, status):
        raise SystemExit(f"{method} {path}: {status} {text.decode(errors='replace')}")
    return status, json.loads(text) if wanted else text


def check(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: expected {wanted!r}, found {found!r}")


def wait_until(what, look, programs):
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end:
        programs.check()
        if look():
            return
        time.sleep(0.5)
    raise SystemExit(f"waited {TIMEOUT_SECONDS} s in vain until {what}")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--inside":
        inside(*sys.argv[2:])
    elif len(sys.argv) == 3:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)

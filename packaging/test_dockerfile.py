"""Runs the steps of examples/serve/Dockerfile in bare Debians, without Docker, and then the server as its user.

usage: test_dockerfile.py     from the root of the repository, as root, with debootstrap and iproute2

The context is the commit that is checked out. The server runs in a network of its own, so that its port is free, and the
command of HEALTHCHECK must succeed.
"""

import json
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "examples/serve/Dockerfile"
SUITES = {"debian:12": "bookworm", "debian:12-slim": "bookworm"}
RUN = "tests/golden/runs/translator"


def shell(script, *arguments, network=False):
    """Runs a bash script that has the functions of roots.sh."""
    command = ["bash", "-ec", f"source packaging/roots.sh\n{script}", "test_dockerfile", *map(str, arguments)]
    subprocess.run(["unshare", "--net", *command] if network else command, cwd=ROOT, check=True)


def instructions(text):
    """Pairs (name, arguments), with continued lines joined."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


class Image:
    """The stages of a Dockerfile, each in a folder."""

    def __init__(self, context, folder):
        self.context, self.folder = context, folder
        self.stages, self.root, self.workdir, self.values = {}, None, "/", {}

    def execute(self, name, arguments):
        steps = {"FROM": self.begin, "WORKDIR": self.enter, "COPY": self.copy, "RUN": self.run}
        if name in steps:
            print(f"== {name} {arguments[:100]}", flush=True)
            steps[name](arguments)
        else:
            self.values[name] = arguments

    def begin(self, arguments):
        image, _, stage = arguments.partition(" AS ")
        self.root, self.workdir = self.folder / f"stage{len(self.stages)}", "/"
        self.stages[stage or str(len(self.stages))] = self.root
        shell('make_root "$1" "$2"', SUITES[image], self.root)

    def enter(self, arguments):
        self.workdir = arguments
        (self.root / arguments.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def copy(self, arguments):
        *sources, target = (word for word in shlex.split(arguments) if not word.startswith("--"))
        stage = re.match(r"--from=(\S+)", arguments)
        base = self.stages[stage[1]] if stage else self.context
        into = f"{self.root}/{target.lstrip('/')}" if target.startswith("/") else f"{self.root}{self.workdir}/{target}"
        for source in sources:
            path = base / source.lstrip("/")
            subprocess.run(["cp", "-a", f"{path}/." if path.is_dir() else path, into], check=True)

    def run(self, arguments):
        shell('in_root "$1" sh -ec "$2"', self.root, f"cd {self.workdir}\n{arguments}")

    def serve(self):
        """Starts the entry point on a run, waits for the health check to succeed, and stops it with SIGTERM."""
        health = json.loads(self.values["HEALTHCHECK"].partition(" CMD ")[2])
        server = [*json.loads(self.values["ENTRYPOINT"]), "tiny=/runs/tiny"]
        user = self.values["USER"]
        subprocess.run(["cp", "-r", ROOT / RUN, self.root / "runs-tiny"], check=True)
        script = f"""mkdir -p /runs && mv /runs-tiny /runs/tiny
            setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs {shlex.join(server)} &
            for second in $(seq 60); do {shlex.join(health)} && healthy=1 && break; sleep 1; done
            grep '^Uid' /proc/$!/status
            kill $! && wait $! && [ -n "$healthy" ]"""
        shell('ip link set lo up\nin_root "$1" bash -ec "$2"', self.root, script, network=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder, "context")
        context.mkdir()
        subprocess.run(f"git archive HEAD | tar -x -C {context}", shell=True, cwd=ROOT, check=True)
        image = Image(context, Path(folder))
        for name, arguments in instructions(DOCKERFILE.read_text(encoding="utf-8")):
            image.execute(name, arguments)
        image.serve()
    print("the container's steps: passed")


if __name__ == "__main__":
    main()

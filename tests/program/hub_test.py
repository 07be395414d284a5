"""qkv import hf:OWNER/NAME: downloads from the Hugging Face hub, here a server on this machine."""

import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import QKV, qkv
from hub_server import COMMIT, Fault, Hub, Repository, Server

NAME = "owner/small-model"
HUGGING_FACE = ("HF_", "HUGGING", "TRANSFORMERS_", "http", "HTTP", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_")


@pytest.fixture(scope="module")
def model(trained, tmp_path_factory):
    """The files of a small translator in the layout of Hugging Face."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    qkv("export", trained, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def hub(model):
    server = Hub()
    files = {**model, "README.md": b"# A model\n", "onnx/model.onnx": b"0" * 1000, "tf_model.h5": b"1" * 1000}
    server.add(NAME, Repository(files, large={"model.safetensors"}))
    yield server
    server.close()


def heed_interrupts():
    """Undoes what a shell does to programs in the background, such as these tests: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class User:
    """Runs commands with an empty cache and without the variables of this machine."""

    def __init__(self, hub, folder):
        self.folder, self.cache, self.runs = folder, folder / "hf/hub", 0
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(HUGGING_FACE)}
        self.env.update(HF_ENDPOINT=hub.url + "/", HF_HOME=str(folder / "hf"), HOME=str(folder))

    def start(self, source, **env):
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        return run, subprocess.Popen([QKV, "import", source, run], env={**self.env, **env}, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     preexec_fn=heed_interrupts)

    def fetch(self, source=f"hf:{NAME}", **env):
        """Imports a model; returns its run and what was reported on standard error."""
        run, process = self.start(source, **env)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.startswith(f"{run}: ")
        return run, err

    def refused(self, source=f"hf:{NAME}", **env):
        """The error of an import that fails, without the program's name."""
        run, process = self.start(source, **env)
        out, err = process.communicate(timeout=120)
        lines = [line for line in err.splitlines() if not line.startswith("downloaded ")]
        assert process.returncode == 1 and out == "" and not run.exists(), err
        assert lines[-1].startswith("qkv: ")
        return lines[-1].removeprefix("qkv: ")

    @property
    def repository(self):
        return self.cache / "models--owner--small-model"

    def incomplete(self):
        return list(self.repository.glob("blobs/*.incomplete"))


@pytest.fixture
def user(hub, tmp_path):
    return User(hub, tmp_path)


def test_a_model_is_downloaded_into_the_shared_cache_and_imported(hub, user, model):
    run, err = user.fetch()
    (user.folder / "local").mkdir()
    for name, content in model.items():
        (user.folder / "local" / name).write_bytes(content)
    qkv("import", user.folder / "local", user.folder / "expected")
    for path in (user.folder / "expected").iterdir():
        assert (run / path.name).read_bytes() == path.read_bytes()
    names = {path.name for path in (user.repository / f"snapshots/{COMMIT}").iterdir()}
    assert names == set(model)
    for name, content in model.items():
        path = user.repository / f"snapshots/{COMMIT}" / name
        assert path.is_symlink() and os.readlink(path).startswith("../../blobs/") and path.read_bytes() == content
    assert (user.repository / "refs/main").read_text() == COMMIT
    assert not user.incomplete()
    assert "downloaded model.safetensors (" in err and "\r" not in err


def test_files_that_import_does_not_read_are_not_requested(hub, user):
    user.fetch()
    paths = [path for _, path, _ in hub.requests]
    assert not any("README" in path or "onnx" in path or "tf_model" in path for path in paths)
    assert not any(len(headers.get("Authorization", "")) for _, _, headers in hub.requests)


def test_files_in_the_cache_are_not_requested_again(hub, user):
    user.fetch()
    hub.requests.clear()
    _, err = user.fetch()
    assert [path for _, path, _ in hub.requests] == [f"/api/models/{NAME}/revision/main"] and err == ""


def test_offline_the_cache_is_used_without_a_request(hub, user):
    user.fetch()
    hub.requests.clear()
    for source in f"hf:{NAME}", f"hf:{NAME}@main", f"hf:{NAME}@{COMMIT}":
        user.fetch(source, HF_HUB_OFFLINE="1")
    assert hub.requests == []
    assert user.refused(f"hf:{NAME}@v2", HF_HUB_OFFLINE="yes") == (
        f'hf:{NAME}: revision "v2" is not in the cache, and HF_HUB_OFFLINE is set')
    (user.repository / f"snapshots/{COMMIT}/model.safetensors").unlink()
    assert user.refused(HF_HUB_OFFLINE="1").startswith(f"hf:{NAME}: has no weights that can be read: expected ")


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub, user):
    user.fetch(f"hf:{NAME}@v1/beta")
    assert hub.asked("GET", "/revision/v1%2Fbeta")
    assert (user.repository / "refs/v1/beta").read_text() == COMMIT
    user.fetch(f"hf:{NAME}@{COMMIT}")
    assert user.refused(f"hf:{NAME}@v2") == f'hf:{NAME}: has no revision "v2" (status 404)'


def test_a_new_commit_downloads_only_what_changed(hub, user, model):
    user.fetch()
    files = {**model, "config.json": model["config.json"] + b"\n"}
    hub.add(NAME, Repository(files, large={"model.safetensors"}, commit="f" * 40))
    _, err = user.fetch()
    assert [line.split()[1] for line in err.splitlines()] == ["config.json"]
    assert (user.repository / "refs/main").read_text() == "f" * 40


def test_a_repository_without_an_owner_is_redirected(hub, user):
    hub.renamed["small-model"] = NAME
    user.fetch("hf:small-model")
    assert (user.cache / f"models--small-model/snapshots/{COMMIT}/config.json").exists()


def test_the_token_is_sent_to_the_endpoint_only(hub, user):
    hub.repositories[NAME].token = "secret"
    user.fetch(HF_TOKEN="secret")
    assert all(headers["Authorization"] == "Bearer secret" for _, _, headers in hub.requests)
    assert hub.storage.requests and not any("Authorization" in headers for _, _, headers in hub.storage.requests)


def test_the_token_may_be_in_a_file(hub, user):
    hub.repositories[NAME].token = "secret"
    (user.folder / "hf").mkdir()
    (user.folder / "hf/token").write_text("secret\n")
    user.fetch()
    assert user.refused(HF_TOKEN="a\nb") == "HF_TOKEN: must be one word of ASCII characters"


def test_a_private_or_missing_model_is_one_line(hub, user):
    hub.repositories[NAME].token = "secret"
    assert user.refused() == (
        f"hf:{NAME}: not found at {hub.url}: check the name, and set HF_TOKEN if the model is private (status 401; the "
        'hub says: "Invalid username or password.")')
    assert user.refused(HF_TOKEN="wrong") == (
        f"hf:{NAME}: not found at {hub.url}: check the name, and that HF_TOKEN is valid and may read it (status 401; the "
        'hub says: "Invalid credentials")')
    assert user.refused("hf:owner/none", HF_TOKEN="x").endswith('(status 404; the hub says: "Repository not found")')


def test_a_gated_model_says_what_to_do(hub, user):
    hub.repositories[NAME].token, hub.repositories[NAME].gated = "secret", True
    for token, status, sent in ("", 401, "no"), ("wrong", 403, "a"):
        assert user.refused(HF_TOKEN=token).startswith(
            f"hf:{NAME}/config.json: access is restricted: accept the conditions at {hub.url}/{NAME}, and set HF_TOKEN to "
            f"a token of that account (status {status}, {sent} token was sent; the hub says: ")
    user.fetch(HF_TOKEN="secret")


def test_denied_access_is_one_line(hub, user):
    hub.faults["GET /api"] = [Fault(403, {"X-Error-Message": "Forbidden\x01\nx"[:10]})]
    assert user.refused() == f'hf:{NAME}: access is denied: set HF_TOKEN (status 403; the hub says: "Forbidden\\u0001")'


def test_too_many_requests_are_repeated_when_the_hub_allows(hub, user):
    hub.faults["GET /api"] = [Fault(429, {"Retry-After": "1"})]
    hub.faults["HEAD /owner"] = [Fault(429, {"RateLimit": '"resolvers";r=0;t=1'})]
    begin = time.monotonic()
    _, err = user.fetch()
    assert time.monotonic() - begin >= 2  # the least that the answers ask for
    assert err.splitlines()[0] == "status 429; next attempt in 1 s"
    hub.faults["GET /api"] = [Fault(429, {"Retry-After": "301"})]
    assert user.refused() == (
        f"hf:{NAME}: too many requests: try again in 301 s (status 429; with HF_TOKEN the hub allows more)")


def test_a_failing_server_is_asked_again_a_few_times(hub, user):
    hub.faults["GET /api"] = [Fault(503), Fault(500)]
    hub.faults["HEAD /owner"] = [Fault(502)]
    hub.storage.faults["GET"] = [Fault(504)]
    user.fetch()
    hub.faults["GET /api"] = [Fault(503)] * 9
    assert user.refused() == f"hf:{NAME}: {hub.url} answers with status 503: try again later"
    assert len(hub.faults["GET /api"]) == 4


def test_a_connection_that_is_cut_is_resumed(hub, user, model):
    size = len(model["model.safetensors"])
    hub.storage.faults["GET"] = [Fault(cut=size // 3), Fault(cut=0), Fault(cut=size // 3)]
    user.fetch()
    ranges = [headers.get("Range") for _, headers in hub.storage.asked("GET", "")]
    assert ranges == [None, f"bytes={size // 3}-", f"bytes={size // 3}-", f"bytes={size // 3 * 2}-"]


def test_a_connection_that_stalls_is_resumed(hub, user):
    hub.storage.faults["GET"] = [Fault(stall=True)]
    user.fetch(HF_HUB_DOWNLOAD_TIMEOUT="5")
    assert len(hub.storage.requests) == 2


def test_what_has_arrived_is_kept_for_the_next_command(hub, user, model):
    size = len(model["model.safetensors"])
    hub.storage.faults["GET"] = [Fault(cut=1000), Fault(stall=True)]
    _, process = user.start(f"hf:{NAME}")
    deadline = time.monotonic() + 60
    while len(hub.storage.requests) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)  # Ctrl-C
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert [path.stat().st_size for path in user.incomplete()] == [1000]
    hub.storage.requests.clear()
    user.fetch()
    assert [headers.get("Range") for _, headers in hub.storage.asked("GET", "")] == ["bytes=1000-"]
    assert not user.incomplete() and size > 1000


def test_a_server_without_ranges_is_read_from_the_start(hub, user):
    hub.storage.no_ranges = True
    hub.storage.faults["GET"] = [Fault(cut=1000)]
    user.fetch()


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(hub, user):
    hub.storage.faults["GET"] = [Fault(change=True)]
    message = user.refused()
    assert message.startswith(f"hf:{NAME}/model.safetensors: must have the checksum ")
    assert message.endswith("; what was received is deleted, so try again")
    assert not user.incomplete() and not (user.repository / f"snapshots/{COMMIT}/model.safetensors").exists()
    assert not (user.repository / "refs/main").exists()
    user.fetch()


def test_small_files_are_checked_too(hub, user):
    hub.faults["GET /api/resolve-cache"] = [Fault(change=True)]
    assert user.refused().startswith(f"hf:{NAME}/config.json: must have the checksum ")


def test_a_wrong_file_of_an_earlier_download_is_replaced(hub, user):
    hub.storage.faults["GET"] = [Fault(cut=1000), Fault(404)]
    user.refused()
    part, = user.incomplete()
    part.write_bytes(b"x" * 500)
    hub.storage.requests.clear()
    user.fetch()
    assert [headers.get("Range") for _, headers in hub.storage.asked("GET", "")] == ["bytes=500-", None]


def test_a_server_that_sends_more_than_it_says_is_refused(hub, user):
    hub.storage.faults["GET"] = [Fault(200, {"Content-Length": 10 ** 6}, body=b"x" * 10 ** 6)]
    assert "(the server sends more)" in user.refused()


def test_a_full_disk_is_one_line(hub, user):
    assert user.refused(HF_HUB_CACHE="/dev/null/cache").startswith("/dev/null/cache/")
    hub.storage.faults["GET"] = [Fault(cut=1000), Fault(404)]
    user.refused()
    part, = user.incomplete()
    part.unlink()
    part.symlink_to("/dev/full")
    assert user.refused() == f"{part}: cannot be written: No space left on device"


def test_two_programs_download_a_file_once(hub, user):
    hub.storage.faults["GET"] = [Fault(stall=True)]
    one = user.start(f"hf:{NAME}", HF_HUB_DOWNLOAD_TIMEOUT="5")[1]
    two = user.start(f"hf:{NAME}")[1]
    for process in one, two:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(hub.storage.requests) <= 3  # the one that stalled, its repetition, perhaps one before the lock


def test_the_lock_of_other_programs_is_respected(hub, user):
    user.fetch()
    blob = os.path.basename(os.readlink(user.repository / f"snapshots/{COMMIT}/config.json"))
    lock = user.cache / f".locks/models--owner--small-model/{blob}.lock"
    assert lock.exists()
    (user.repository / "blobs" / blob).unlink()
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = user.start(f"hf:{NAME}")[1]
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_a_proxy_is_used(hub, user):
    user.fetch(HF_ENDPOINT="http://hub.invalid", http_proxy=hub.url, no_proxy="127.0.0.1")
    assert any(path.startswith("http://hub.invalid/api/models/") for _, path, _ in hub.requests)


def test_an_unreachable_hub_is_one_line(hub, user):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        message = user.refused(HF_ENDPOINT=url)
    assert message.startswith(f"hf:{NAME}: {url} cannot be reached: ")
    assert message.endswith("; HF_HUB_OFFLINE=1 imports from the cache")


def test_redirects_in_a_circle_end(hub, user):
    hub.faults["GET /api"] = [Fault(302, {"Location": "/api/models/x"})] * 20
    assert user.refused() == f"hf:{NAME}: more than 10 redirects"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1/"])
def test_redirects_leave_http_never(hub, user, location):
    hub.faults["GET /api"] = [Fault(302, {"Location": location})]
    assert user.refused().startswith(f"hf:{NAME}: cannot be downloaded: ")


@pytest.mark.parametrize("source, part", [
    ("hf:", 'the name is not valid (is "")'),
    ("hf:../x", 'the owner is not valid (is "..")'),
    ("hf:a/..", 'the name is not valid (is "..")'),
    ("hf:a/b--c", 'the name is not valid (is "b--c")'),
    ("hf:a/b@../../x", 'the revision is not valid (is "../../x")'),
    ("hf:a/b@", 'the revision is not valid (is "")'),
    ("hf:a/b/../c", 'the file is not valid (is "../c")'),
    ("hf:a/b//etc/passwd", 'the file is not valid (is "/etc/passwd")'),
])
def test_names_cannot_leave_the_cache(hub, user, source, part):
    assert user.refused(source) == (
        f'"{source}": {part}: expected hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/FILE')
    assert hub.requests == []


@pytest.mark.parametrize("name", ["../x.spm", "/etc/passwd", "a/../b.model", "a\\..\\b.spm", "x\n.spm", ""])
def test_names_in_the_list_of_files_are_checked(hub, user, name):
    hub.repositories[NAME].files[name] = b""
    assert user.refused().startswith(f"hf:{NAME}: description by the hub: rfilename must be a path in the repository ")


def test_a_broken_description_is_one_line(hub, user):
    for body, said in (b"{", "syntax"), (b"[]", "sha must be"), (json.dumps({"sha": COMMIT}).encode(), "siblings must"):
        hub.faults["GET /api"] = [Fault(200, {"Content-Length": len(body)}, body=body)]
        assert f"hf:{NAME}: description by the hub: " in user.refused()
    body = b" " * (17 << 20)
    hub.faults["GET /api"] = [Fault(200, {"Content-Length": len(body)}, body=body)]
    assert user.refused() == f"hf:{NAME}: the list of files must have at most 16 MiB"


def test_a_repository_without_weights_lists_what_it_has(hub, user):
    hub.repositories[NAME].files = {"config.json": b"{}", "tf_model.h5": b""}
    message = user.refused()
    assert message.startswith(f"hf:{NAME}: has no weights that can be read: expected config.json with model.safetensors,")
    assert message.endswith("(has config.json, tf_model.h5)")


def test_a_class_that_is_not_supported_is_refused_before_its_weights_are_downloaded(hub, user):
    hub.repositories[NAME].files["config.json"] = b'{"model_type": "perceiver"}'
    assert "perceiver" in user.refused()
    assert hub.storage.requests == []


def test_one_file_can_be_named(hub, user):
    assert "must be a model around nn.Transformer" in user.refused(f"hf:{NAME}/model.safetensors@main")
    assert [path.name for path in (user.repository / f"snapshots/{COMMIT}").iterdir()] == ["model.safetensors"]
    assert user.refused(f"hf:{NAME}/none.gguf") == f'hf:{NAME}: has no file "none.gguf" at revision "main"'


def test_invalid_variables_are_named(hub, user):
    for url in ("ftp://me:secret@x", "me:secret@x", "http://me:secret@127.0.0.1:1", "http://me:se/cret@x@127.0.0.1:1"):
        message = user.refused(HF_ENDPOINT=url)
        assert "cret" not in message and ("***@" in message or "URL" in message), message
    assert user.refused(HF_ENDPOINT="ftp://x") == 'HF_ENDPOINT: must start with https:// or http:// (is "ftp://x")'
    assert user.refused(HF_HUB_DOWNLOAD_TIMEOUT="0") == (
        'HF_HUB_DOWNLOAD_TIMEOUT: must be between 1 and 3600 seconds (is "0")')


def client_python():
    """A Python that has huggingface_hub, or None."""
    for python in sys.executable, os.environ.get("HF_PYTHON"):
        if python and subprocess.run([python, "-c", "import huggingface_hub"], capture_output=True).returncode == 0:
            return python
    return None


CLIENT = client_python()
needs_client = pytest.mark.skipif(
    not CLIENT, reason="needs huggingface_hub: pip install huggingface_hub, in this Python or that of HF_PYTHON")


def with_client(user, code, **env):
    done = subprocess.run([CLIENT, "-c", f"from huggingface_hub import *\n{code}"], env={**user.env, **env}, text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_client
def test_the_official_client_reads_the_same_server(hub, user, model):
    """So the server of these tests speaks the real protocol."""
    hub.repositories[NAME].token = "secret"
    folder = with_client(user, f"print(snapshot_download('{NAME}'))", HF_TOKEN="secret")
    assert {path.name for path in pathlib.Path(folder).iterdir()} >= set(model)
    for name, content in model.items():
        assert (pathlib.Path(folder) / name).read_bytes() == content


@needs_client
def test_what_the_official_client_downloaded_is_used(hub, user):
    with_client(user, f"snapshot_download('{NAME}')")
    hub.requests.clear()
    user.fetch(HF_HUB_OFFLINE="1")
    assert hub.requests == []
    user.fetch()
    assert [path for _, path, _ in hub.requests] == [f"/api/models/{NAME}/revision/main"]


@needs_client
def test_the_official_client_uses_what_was_downloaded(hub, user, model):
    user.fetch()
    hub.requests.clear()
    code = f"for name in {sorted(model)}: print(hf_hub_download('{NAME}', name))"
    for name, path in zip(sorted(model), with_client(user, code, HF_HUB_OFFLINE="1").split()):
        assert pathlib.Path(path).read_bytes() == model[name]
    assert hub.requests == []
    with_client(user, f"hf_hub_download('{NAME}', 'model.safetensors')")
    assert hub.storage.asked("GET", "") and len(hub.storage.requests) == 1  # only the download by qkv

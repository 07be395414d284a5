"""An installed qkv is found by find_package and pkg-config and links; as a subdirectory it adds only its library."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).parent
USER = ROOT / "tests/packaging"


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(project, build, *options):
    return subprocess.run(["cmake", "-G", "Ninja", "-S", USER / project, "-B", build, *options], capture_output=True,
                          text=True)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The build, installed."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("no build directory")
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def check_user(program):
    output = run(program)
    assert "qkv 0.1" in output and "is not a run directory" in output


@pytest.mark.parametrize("component", ["", *(pytest.param(name, marks=pytest.mark.release) for name in ("static", "shared"))])
def test_an_installed_qkv_is_found_and_links(prefix, tmp_path, component):
    done = configure("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DQKV_COMPONENT={component}")
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path)
    check_user(tmp_path / "user")
    assert ("libqkv.so.0.1" in run("ldd", tmp_path / "user")) == (component == "shared")
    assert "qkv" in run(prefix / "bin/qkv", "--version")


def test_a_component_that_is_unknown_is_an_error_that_names_the_others(prefix, tmp_path):
    done = configure("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DQKV_COMPONENT=gpu")
    assert done.returncode != 0 and "components: static, shared" in " ".join(done.stderr.split())


@pytest.mark.release
def test_pkg_config_names_the_shared_library(prefix, tmp_path):
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    file = next(prefix.rglob("qkv.pc"))
    flags = run("pkg-config", "--cflags", "--libs", file).split()
    run("c++", "-std=c++20", USER / "main.cc", *flags, "-o", tmp_path / "user", f"-Wl,-rpath,{file.parent.parent}")
    check_user(tmp_path / "user")
    assert run("pkg-config", "--modversion", file).strip() == "0.1.0"


def test_pkg_config_names_the_libraries_that_the_static_one_needs(prefix):
    """All of cmake/Dependencies.cmake: those that the program is linked with."""
    flags = set(run("pkg-config", "--static", "--libs", next(prefix.rglob("qkv.pc"))).split())
    needed = re.findall(r"NEEDED\s+lib([\w+-]+?)(?:-0)?\.so", run("objdump", "-p", prefix / "bin/qkv"))
    system = {"c", "m", "gcc_s", "pthread", "ld-linux-x86-64"}
    assert {f"-l{name}" for name in needed if name not in system} <= flags


def test_the_shared_library_exports_only_the_public_names(prefix):
    library = next(prefix.rglob("libqkv.so"))
    names = run("nm", "-D", "--defined-only", "--demangle", library).splitlines()
    exported = [line.split(maxsplit=2)[2] for line in names if not line.endswith(" A QKV_0.1")]
    assert len(exported) > 100 and all("qkv::" in name for name in exported)
    assert not [name for name in exported if "qkv::fail(" in name or "qkv::load_transport" in name]
    assert os.readlink(library) == "libqkv.so.0.1" and os.readlink(library.parent / "libqkv.so.0.1") == "libqkv.so.0.1.0"


def test_a_subdirectory_brings_only_the_library_and_is_quiet(tmp_path):
    done = configure("add_subdirectory", tmp_path, f"-DQKV_SOURCE={ROOT}")
    assert done.returncode == 0 and not done.stderr, done.stderr
    own = re.sub(r"-- .*(?:compiler identification|Detecting|Check for working|Configuring|Generating|Build files).*\n", "",
                 done.stdout)
    assert own == ""

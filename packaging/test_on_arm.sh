#!/usr/bin/env bash
# Builds qkv for 64-bit Arm with Debian's cross compiler, and runs its tests in an emulator (qemu-user).
#   packaging/test_on_arm.sh
# Needs root, debootstrap and a kernel with binfmt_misc. It works in a Debian 12 of its own, where Arm's libraries do not
# replace those of this machine. The build stays in build/arm. QKV_BUILD_PACKAGES, QKV_BUILD_MOUNTS and
# QKV_BUILD_ENV are those of release.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
source packaging/roots.sh
need_root

work=$(mktemp -d)
trap 'stop_emulator; rm -rf "$work"' EXIT
root=$work/root

# Every command at work, and the bytes of resumed runs. Others compare bytes with those of x86 (kept_runs), or
# watch signals, processes and files, in which the emulator and not qkv would be tested.
commands=(translate generate recommend embed classify evaluate quantize import export resume)

make_root bookworm "$root"
add_arm "$root"
install_in "$root" libgtest-dev:arm64 python3-pytest ${QKV_BUILD_PACKAGES:-}
mounts="$PWD:/qkv"
[ ! -d ../shared ] || mounts+=" $(realpath ../shared):/shared"
QKV_MOUNTS="$mounts ${QKV_BUILD_MOUNTS:-}" QKV_ENV="QKV=/qkv/build/arm/qkv ${QKV_BUILD_ENV:-}" in_root "$root" bash -euc "
  cd /qkv
  cmake --preset arm > /dev/null
  cmake --build --preset arm
  ctest --preset arm --parallel $(nproc)
  python3 -m pytest -q -p no:cacheprovider $(printf 'tests/program/%s_test.py ' "${commands[@]}")"

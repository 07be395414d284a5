#!/usr/bin/env bash
# Builds the packages of one Debian, in that Debian: packaging/release.sh runs it in a root of its own.
#   build.sh VERSION OUT ARCHITECTURE [wheel]     VERSION is that of the .deb; with "wheel" also the wheel and, on the
#                                                 processor of the packages, the source distribution
# The working directory is the source tree. PYTHONPATH holds the packages of requirements.txt. SOURCE_DATE_EPOCH is the
# time that every file gets.
set -euo pipefail
version=$1 out=$2 kind=${4:-}
eval "$(dpkg-architecture --host-arch "$3" --print-set)"
python=python3 cross=() toolchain=
if [ "$DEB_HOST_ARCH" != "$DEB_BUILD_ARCH" ]; then  # add_arm of roots.sh made what this needs
  python=python3-$DEB_HOST_ARCH
  cross=(--host-arch "$DEB_HOST_ARCH" --build-profiles=cross,nocheck)
  toolchain="'cmake.define.CMAKE_TOOLCHAIN_FILE': '$PWD/cmake/aarch64.cmake',"
fi
objects=obj-$DEB_HOST_GNU_TYPE

build_debs() {
  export DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)"
  sed -i "1s/(.*)/($version)/" debian/changelog
  dpkg-buildpackage -b -us -uc "${cross[@]}" > "$out/build.log" 2>&1 || {
    grep -m 10 -A 10 'CMake Error\|error:' "$out/build.log" >&2  # far above the end, which has CMake's variables
    tail -n 20 "$out/build.log" >&2
    return 1
  }
  mv ../*.deb "$out/"
}

# Calls a function of the build backend, as pip does.
backend() { "$python" -c "import scikit_build_core.build as backend; backend.$1"; }

# The wheel holds the program and the library of the .deb. OpenMP's runtime keeps its name, so that a process that also
# loads that of PyTorch has only one of them: finish_wheel.py adds it.
build_wheel() {
  local work
  work=$(mktemp -d)
  cmake --install "$objects" --strip --prefix "$work/prefix" > /dev/null
  backend "build_wheel('$work', {'cmake.define.QKV_USE_INSTALLED': 'ON', $toolchain
    'cmake.define.CMAKE_PREFIX_PATH': '$work/prefix'})" > "$work/log" || { tail -n 40 "$work/log" >&2; return 1; }
  PATH=$PYTHONPATH/bin:$PATH "$python" -m auditwheel repair --exclude libgomp.so.1 --wheel-dir "$work/repaired" "$work"/*.whl
  python3 packaging/finish_wheel.py "$work"/repaired/*.whl "$out"
}

mkdir -p "$out"
[ "$kind" != wheel ] || [ "$DEB_HOST_ARCH" != "$DEB_BUILD_ARCH" ] || backend "build_sdist('$out')" > /dev/null
build_debs
[ "$kind" != wheel ] || build_wheel

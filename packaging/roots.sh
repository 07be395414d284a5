# Functions that work in a bare Debian of their own: a folder made by debootstrap. They need root. To be sourced.
# QKV_ROOTS, by default build/roots, keeps an archive of each bare Debian, so that it is fetched once.

need_root() {
  [ "$(id -u)" -eq 0 ] || { echo "$0: must run as root" >&2; return 1; }
  command -v debootstrap > /dev/null || { echo "$0: debootstrap is not installed (apt install debootstrap)" >&2; return 1; }
}

# Prints the address from which apt fetches Debian here.
debian_mirror() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' | head -n 1
}

# make_root SUITE FOLDER: a Debian with the packages of priority "required", and apt.
make_root() {
  local suite=$1 folder=$2 archive=${QKV_ROOTS:-build/roots}/$1.tar
  mkdir -p "$(dirname "$archive")"
  if [ ! -s "$archive" ]; then
    debootstrap --variant=minbase "$suite" "$archive.root" "$(debian_mirror)" > "$archive.log" 2>&1 \
      || { tail "$archive.log" >&2; return 1; }
    tar -C "$archive.root" -c . > "$archive.new"
    mv "$archive.new" "$archive"
    rm -rf "$archive.root"
  fi
  mkdir -p "$folder"
  tar -C "$folder" -xf "$archive"
  cp --remove-destination /etc/resolv.conf "$folder/etc/resolv.conf"
  # As in the images of Debian: no services, no documentation of packages, no translations of apt's lists.
  printf '#!/bin/sh\nexit 101\n' > "$folder/usr/sbin/policy-rc.d"
  chmod +x "$folder/usr/sbin/policy-rc.d"
  printf 'path-exclude /usr/share/man/*\n' > "$folder/etc/dpkg/dpkg.cfg.d/bare"
  printf 'Acquire::Languages "none";\n' > "$folder/etc/apt/apt.conf.d/bare"
}

# in_root FOLDER COMMAND...: runs it there, in an environment of its own, with /proc, /dev and the mounts of QKV_MOUNTS
# (FROM:TO, separated by spaces), which end with the command.
in_root() {
  QKV_ROOT=$1 unshare --mount bash -ec '
    mount --rbind /proc "$QKV_ROOT/proc"
    mount --rbind /dev "$QKV_ROOT/dev"
    for pair in ${QKV_MOUNTS:-}; do
      mkdir -p "$QKV_ROOT${pair#*:}"
      mount --bind "${pair%%:*}" "$QKV_ROOT${pair#*:}"
    done
    exec env -i ${QKV_ENV:-} HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$QKV_ROOT" "$@"' in_root "${@:2}"
}

# install_in FOLDER PACKAGE...
install_in() {
  in_root "$1" apt-get update -q > /dev/null
  in_root "$1" apt-get install -y -q --no-install-recommends "${@:2}" > "$1/install.log" 2>&1 \
    || { tail "$1/install.log" >&2; return 1; }
}

# install_build_dependencies FOLDER [OPTION...]: installs what debian/control names; the options are those of apt-get.
install_build_dependencies() {
  mkdir -p "$1/srv/dependencies"
  cp -r debian "$1/srv/dependencies/"
  in_root "$1" apt-get build-dep -y -q --no-install-recommends "${@:2}" /srv/dependencies >> "$1/install.log" 2>&1 \
    || { tail "$1/install.log" >&2; return 1; }
}

# add_arm FOLDER: adds what builds qkv for 64-bit Arm there, and runs it: the cross compiler, Arm's libraries, Python for
# Arm as python3-arm64, and the emulator of Debian 13. That of Debian 12 needs memory for every page of the addresses
# that a program reserves, and an arena of qkv reserves as many as the machine has memory. The kernel then runs programs
# for Arm with this emulator, in all roots, until stop_emulator. A machine that has an emulator already keeps it.
add_arm() {
  make_root trixie "$1.emulator"
  install_in "$1.emulator" qemu-user
  mv "$1.emulator/usr/bin/qemu-aarch64" "$1/usr/local/bin/"
  rm -rf "$1.emulator"
  in_root "$1" dpkg --add-architecture arm64
  install_in "$1" crossbuild-essential-arm64
  install_build_dependencies "$1" --host-architecture arm64 -P cross,nocheck
  in_root "$1" bash -ec '
    version=$(python3 -c "import sysconfig; print(sysconfig.get_config_var(\"LDVERSION\"))")
    echo "#include <Python.h>
      int main(int count, char** arguments) { return Py_BytesMain(count, arguments); }" \
      | aarch64-linux-gnu-gcc -x c - -o /usr/local/bin/python3-arm64 "-I/usr/include/python$version" "-lpython$version"'
  emulate_arm "$1/usr/local/bin/qemu-aarch64"
}

emulate_arm() {
  local formats=/proc/sys/fs/binfmt_misc
  [ -e $formats/register ] || mount -t binfmt_misc none $formats
  [ ! -e $formats/qemu-aarch64 ] && [ ! -e $formats/qkv-aarch64 ] || return 0
  # The first 20 bytes of a file: an ELF file of 64 bits, a program or a library, for processor 183.
  local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  echo ":qkv-aarch64:M::$magic:$mask:$1:F" > $formats/register
}

stop_emulator() {
  [ ! -e /proc/sys/fs/binfmt_misc/qkv-aarch64 ] || echo -1 > /proc/sys/fs/binfmt_misc/qkv-aarch64
}

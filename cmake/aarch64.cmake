# Toolchain of Debian for building on x86 what runs on 64-bit Arm. The programs that the build itself runs, and the
# tests, run in an emulator. packaging/test_on_arm.sh installs all of this in a Debian of its own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(MPI_SKIP_COMPILER_WRAPPER ON)  # mpicc is that of the build machine; pkg-config knows the library of Arm

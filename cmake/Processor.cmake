# Settings that depend on the processor for which qkv is built. One binary is for all of its machines: the kernels are
# built for the instruction sets of Highway that are not disabled here, and chosen at run time (src/core/isa.h).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)")
  # NEON. The vectors of SVE have no size when the library is compiled, so the kernels cannot keep them in arrays.
  set(isas "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
  # Characters have a sign, as on x86: code that reads text compares them with 0.
  add_compile_options(-fsigned-char)
else()
  set(isas "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")  # portable, AVX2 and AVX-512
endif()
set(QKV_DISABLED_ISAS ${isas} CACHE STRING "Instruction sets that kernels are not built for")

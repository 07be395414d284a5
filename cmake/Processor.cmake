# Settings that depend on the processor for which qkv is built. One binary is for all of its machines: the kernels are
# built for the instruction sets of Highway that are not disabled here, and chosen at run time (src/core/system/isa.h).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)")
  # NEON. The vectors of SVE have no size when the library is compiled, so the kernels cannot keep them in arrays.
  set(isas "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
  set(newer_isas "HWY_NEON|HWY_NEON_BF16")  # what is left is HWY_NEON_WITHOUT_AES, which all these processors have
  # Characters have a sign, as on x86: code that reads text compares them with 0.
  add_compile_options(-fsigned-char)
else()
  set(isas "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")  # portable, AVX2 and AVX-512
  if(QKV_SANITIZE STREQUAL "address")  # compiles slowly, and runs on the machine that compiles it
    file(STRINGS /proc/cpuinfo avx512 REGEX "avx512bw.* avx512vl" LIMIT_COUNT 1)
    if(avx512)
      string(APPEND isas "|HWY_AVX2")
    else()
      string(APPEND isas "|HWY_AVX3")
    endif()
  endif()
  set(newer_isas "HWY_AVX3_ZEN4|HWY_AVX3_SPR")
endif()
set(QKV_DISABLED_ISAS ${isas} CACHE STRING "Instruction sets that kernels are not built for")
set(QKV_DISABLED_TARGETS ${QKV_DISABLED_ISAS})
if(hwy_VERSION VERSION_GREATER_EQUAL 1.1)  # knows more instruction sets
  string(APPEND QKV_DISABLED_TARGETS "|${newer_isas}")
endif()

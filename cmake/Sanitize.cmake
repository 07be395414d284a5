# Applies the sanitizers of QKV_SANITIZE to every target.
set(QKV_SANITIZE "" CACHE STRING "Sanitizers: address (and undefined, and coverage for libFuzzer; clang), thread")
set_property(CACHE QKV_SANITIZE PROPERTY STRINGS "" address thread)

# AddressSanitizer finds bad pointers at run time, so the checks of undefined behaviour that duplicate it are off.
# An index of a span beyond its end is within the arena, where AddressSanitizer sees nothing wrong; the assertions of
# libstdc++ do.
set(sanitize_address -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=null,object-size,pointer-overflow,vptr
    -fno-sanitize-recover=all -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
set(sanitize_thread -fsanitize=thread)

if(QKV_SANITIZE AND NOT DEFINED sanitize_${QKV_SANITIZE})
  message(FATAL_ERROR "QKV_SANITIZE is \"${QKV_SANITIZE}\" (must be address or thread)")
elseif(QKV_SANITIZE STREQUAL "address" AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "QKV_SANITIZE=address needs clang (the preset asan), which has libFuzzer")
elseif(QKV_SANITIZE)
  add_compile_options(${sanitize_${QKV_SANITIZE}})
  add_link_options(${sanitize_${QKV_SANITIZE}})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
endif()

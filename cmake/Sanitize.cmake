# Applies the sanitizers of QKV_SANITIZE to every target.
set(QKV_SANITIZE "" CACHE STRING "Sanitizers: address (and undefined), fuzzer (the same and coverage; clang), thread")
set_property(CACHE QKV_SANITIZE PROPERTY STRINGS "" address fuzzer thread)

# AddressSanitizer finds bad pointers at run time, so the checks of undefined behaviour that duplicate it are off.
set(undefined -fno-sanitize=null,object-size,pointer-overflow,vptr -fno-omit-frame-pointer)
# An index of a span beyond its end is within the arena, where AddressSanitizer sees nothing wrong.
set(bounds -D_GLIBCXX_ASSERTIONS)
# The alignment check doubles the time of compilation; the fuzz targets keep it.
set(sanitize_address -fsanitize=address,undefined ${undefined} -fno-sanitize=alignment -fno-sanitize-recover=undefined
    ${bounds})
# clang 14 cannot compile coroutines with the check of function types.
set(sanitize_fuzzer -fsanitize=fuzzer-no-link,address,undefined ${undefined} -fno-sanitize=function
    -fno-sanitize-recover=all ${bounds})
set(sanitize_thread -fsanitize=thread)

if(QKV_SANITIZE AND NOT DEFINED sanitize_${QKV_SANITIZE})
  message(FATAL_ERROR "QKV_SANITIZE is \"${QKV_SANITIZE}\" (must be address, fuzzer or thread)")
elseif(QKV_SANITIZE)
  add_compile_options(${sanitize_${QKV_SANITIZE}})
  add_link_options(${sanitize_${QKV_SANITIZE}})
endif()

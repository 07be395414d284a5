# How the ops are compiled. QKV_OPS are their sources; with CMAKE_UNITY_BUILD, most of them in one generated file.

# Each kernel includes itself once for every instruction set (hwy/foreach_target.h). The generated file does that for all
# of its kernels together, which parses Highway once and not once for each. The four largest remain alone, so that
# several cores share the work.
if(CMAKE_UNITY_BUILD)
  set(unit ${PROJECT_BINARY_DIR}/ops_unit.cc)
  set(target_include "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${unit}\"\n")
  set(text "${target_include}#include <hwy/foreach_target.h>\n")
  foreach(source ${QKV_OPS})
    file(STRINGS ${source} kernel REGEX "foreach_target" LIMIT_COUNT 1)
    if(kernel AND NOT source MATCHES "/(attention_backward|attention_forward|row_linear|tile_linear).cc$")
      string(APPEND text "#include \"${source}\"\n")
      list(REMOVE_ITEM QKV_OPS ${source})
    endif()
  endforeach()
  string(APPEND text "${target_include}")
  file(GENERATE OUTPUT ${unit} CONTENT "${text}")
  list(APPEND QKV_OPS ${unit})
endif()

set(QKV_OPS_FLAGS "" CACHE STRING "Additional compile options for the ops")
# Without optimization, GCC 12 applies Highway's instruction sets wrongly after a precompiled header.
set_source_files_properties(${QKV_OPS} PROPERTIES COMPILE_OPTIONS "${QKV_OPS_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)

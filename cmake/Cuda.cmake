# The plugin for NVIDIA GPUs (plugins/cuda): libqkv_cuda.so, loaded at run time as those of Plugins.cmake. nvcc comes
# from a toolkit, from Debian or from wheels of PyPI (docs/install.md). The CUDA runtime is linked statically, and finds
# the driver when it is called.
find_program(QKV_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin DOC "The compiler of the plugin for GPUs")
set(QKV_CUDA_ARCHITECTURES "80;90a;100a" CACHE STRING "Architectures of the plugin for GPUs")

set(version 0)
if(QKV_NVCC)
  execute_process(COMMAND ${QKV_NVCC} --version OUTPUT_VARIABLE version ERROR_QUIET)
  string(REGEX MATCH "release ([0-9.]+)" version "${version}")
  set(version "${CMAKE_MATCH_1}")
endif()
if(NOT version VERSION_GREATER_EQUAL 12.8)  # the first that knows sm_100a
  set(reason "nvcc 12.8 or later was not found; QKV_NVCC is its path")
  if(NOT QKV_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "QKV_CUDA: ${reason}")
  endif()
  message(STATUS "The plugin for GPUs is not built: ${reason}")
  return()
endif()
message(STATUS "The plugin for GPUs is built by nvcc ${version}")

# Each file has code for all architectures, and that of the first one in a form that drivers compile for newer GPUs. The
# messages of ptxas about registers are kept next to it, for tests/cuda_plugin_test.py.
set(flags -std=c++20 -O3 --expt-relaxed-constexpr -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra
    -I ${PROJECT_SOURCE_DIR}/include -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/plugins/cuda
    -I ${PROJECT_SOURCE_DIR}/plugins/cuda/gpu)
if(QKV_WERROR)
  list(APPEND flags -Werror all-warnings -Xcompiler -Werror)
endif()
foreach(architecture ${QKV_CUDA_ARCHITECTURES})
  list(APPEND flags -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
list(GET QKV_CUDA_ARCHITECTURES 0 first)
list(APPEND flags -gencode arch=compute_${first},code=compute_${first})

cmake_path(GET QKV_NVCC PARENT_PATH bin)  # wheels have the runtime in lib, where nvcc does not look
set(QKV_CUDA_PLUGIN ${PROJECT_BINARY_DIR}/libqkv_cuda.so)
set(folder ${PROJECT_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${folder})
file(GLOB sources CONFIGURE_DEPENDS plugins/cuda/*.cu plugins/cuda/gpu/*.cu)
set(objects)
foreach(source ${sources})
  cmake_path(GET source STEM name)
  set(object ${folder}/${name}.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} cmake/Cuda.cmake DEPFILE ${object}.d VERBATIM
    COMMAND sh -c "log=$1 && shift && \"$@\" 2> \"$log\" || { cat \"$log\" >&2; exit 1; }" compile ${folder}/${name}.ptxas
            ${QKV_NVCC} ${flags} -Xptxas -v -MD -MF ${object}.d -c -o ${object} ${source})
  list(APPEND objects ${object})
endforeach()
add_custom_command(OUTPUT ${QKV_CUDA_PLUGIN} DEPENDS ${objects} VERBATIM
  COMMAND ${QKV_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -shared -cudart static -L ${bin}/../lib -Xlinker --exclude-libs,ALL -o ${QKV_CUDA_PLUGIN} ${objects})
add_custom_target(qkv_cuda ALL DEPENDS ${QKV_CUDA_PLUGIN})

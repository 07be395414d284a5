# Plugins that carry the messages of training by several processes (include/qkv/transport.h). They are loaded at run time,
# and the library does not link them. MPI is not needed: without it, only the plugin for one machine is built.
enable_language(C)

function(qkv_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  target_include_directories(${target} PRIVATE include)
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_VISIBILITY_PRESET hidden UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow $<$<BOOL:${QKV_WERROR}>:-Werror>)
endfunction()

if(QKV_LOCAL_PLUGIN)
  file(GLOB local CONFIGURE_DEPENDS plugins/local/*.c)
  qkv_add_plugin(qkv_local ${local})
endif()

if(QKV_MPI STREQUAL "AUTO")
  find_package(MPI QUIET COMPONENTS C)
elseif(QKV_MPI)
  find_package(MPI REQUIRED COMPONENTS C)
endif()
if(MPI_C_FOUND)
  qkv_add_plugin(qkv_mpi plugins/mpi/qkv_mpi.c)
  target_link_libraries(qkv_mpi PRIVATE MPI::MPI_C)
endif()

# The same file for a second implementation, which tests/program/ranks_mpi_test.py uses.
find_program(QKV_MPICC_MPICH mpicc.mpich)
if(TARGET qkv_mpi AND QKV_BUILD_TESTS AND QKV_MPICC_MPICH)
  set(mpich ${PROJECT_BINARY_DIR}/libqkv_mpich.so)
  add_custom_command(OUTPUT ${mpich} DEPENDS plugins/mpi/qkv_mpi.c include/qkv/transport.h
    COMMAND ${QKV_MPICC_MPICH} -std=c99 -O2 -Wall -shared -fPIC -I ${PROJECT_SOURCE_DIR}/include -o ${mpich}
            ${PROJECT_SOURCE_DIR}/plugins/mpi/qkv_mpi.c)
  add_custom_target(qkv_mpich ALL DEPENDS ${mpich})
endif()

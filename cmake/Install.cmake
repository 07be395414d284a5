# Install rules and the files that make find_package(qkv) work.
include(CMakePackageConfigHelpers)
set(QKV_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
install(TARGETS qkv EXPORT qkvTargets)
install(DIRECTORY include/qkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT qkvTargets NAMESPACE qkv:: DESTINATION ${QKV_CONFIG_DIR})
file(WRITE ${PROJECT_BINARY_DIR}/qkvConfig.cmake
     "include(\${CMAKE_CURRENT_LIST_DIR}/Dependencies.cmake)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/qkvTargets.cmake)\n")
write_basic_package_version_file(qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkvConfig.cmake ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake
              cmake/Dependencies.cmake DESTINATION ${QKV_CONFIG_DIR})
if(QKV_BUILD_APPS)
  install(TARGETS qkv_program)
endif()
foreach(plugin qkv_local qkv_mpi)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} DESTINATION ${CMAKE_INSTALL_LIBDIR}/qkv)
  endif()
endforeach()

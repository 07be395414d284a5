# Install rules and the files that make find_package(qkv) and pkg-config work.
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
foreach(library qkv qkv_shared)
  if(TARGET ${library})
    get_target_property(component ${library} EXPORT_NAME)
    install(TARGETS ${library} EXPORT qkv-${component})
    install(EXPORT qkv-${component} NAMESPACE qkv:: DESTINATION ${config})
  endif()
endforeach()
install(DIRECTORY include/qkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
write_basic_package_version_file(qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/qkvConfig.cmake ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake cmake/Dependencies.cmake
        DESTINATION ${config})

set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig}
           OUTPUT_VARIABLE QKV_PC_PREFIX)
configure_file(cmake/qkv.pc.in qkv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qkv.pc DESTINATION ${pkgconfig})

if(QKV_BUILD_APPS)
  install(TARGETS qkv_program)
endif()
foreach(plugin qkv_local qkv_mpi)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} DESTINATION ${CMAKE_INSTALL_LIBDIR}/qkv)
  endif()
endforeach()

# The shared library: qkv itself with BUILD_SHARED_LIBS, or qkv_shared, of the same objects, with QKV_SHARED. It exports
# only the names of include/qkv, which that folder's namespaces make visible. The version of its binary interface is
# MAJOR.MINOR, as long as MAJOR is 0.
set(QKV_ABI ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
get_target_property(type qkv TYPE)
if(QKV_SHARED AND NOT type STREQUAL SHARED_LIBRARY)
  add_library(qkv_shared SHARED $<TARGET_OBJECTS:qkv> $<TARGET_OBJECTS:qkv_files>)
  set_target_properties(qkv_shared PROPERTIES OUTPUT_NAME qkv EXPORT_NAME shared LINKER_LANGUAGE CXX)
  qkv_library_settings(qkv_shared)
  add_dependencies(qkv_shared qkv)
endif()
if(type STREQUAL SHARED_LIBRARY)
  set(shared qkv)
  set_target_properties(qkv PROPERTIES EXPORT_NAME shared)
else()
  set(shared qkv_shared)
  set_target_properties(qkv PROPERTIES EXPORT_NAME static)
endif()
if(TARGET ${shared})
  # Without templates of the standard library, which would be visible too.
  set(map ${PROJECT_BINARY_DIR}/qkv.map)
  file(CONFIGURE OUTPUT ${map} @ONLY CONTENT
       "QKV_@QKV_ABI@ { global: _ZN3qkv*; _ZNK3qkv*; _ZT[ISVT]N3qkv*; local: *; };\n")
  target_link_options(${shared} PRIVATE LINKER:--version-script=${map})
  set_target_properties(${shared} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${QKV_ABI} LINK_DEPENDS ${map})
endif()

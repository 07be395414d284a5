# Finds the libraries that qkv links. Read by the build and, after installation, by find_package(qkv).
include(CMakeFindDependencyMacro)
find_dependency(OpenMP)
# Debian's dnnl-config.cmake asks for OpenCL's headers, which qkv does not need.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
if(NOT TARGET qkv_dnnl)
  add_library(qkv_dnnl INTERFACE IMPORTED)
  set_target_properties(qkv_dnnl PROPERTIES INTERFACE_LINK_LIBRARIES ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
find_dependency(hwy CONFIG)
find_dependency(fmt CONFIG)
find_dependency(nlohmann_json CONFIG)
find_dependency(ICU COMPONENTS uc)
find_dependency(OpenSSL COMPONENTS SSL Crypto)
find_dependency(ZLIB)
find_dependency(PkgConfig)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
# Debian's libzip-config.cmake asks for its programs, which qkv does not need.
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(EXPAT REQUIRED IMPORTED_TARGET expat)
pkg_check_modules(MD4C REQUIRED IMPORTED_TARGET md4c)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
# Debian's prometheus-cpp-config.cmake asks for an HTTP server and libcurl, which the core library does not need.
find_library(PROMETHEUS_LIBRARY prometheus-cpp-core REQUIRED)
find_path(PROMETHEUS_INCLUDE_DIR prometheus/registry.h REQUIRED)
if(NOT TARGET qkv_prometheus)
  add_library(qkv_prometheus INTERFACE IMPORTED)
  set_target_properties(qkv_prometheus PROPERTIES INTERFACE_LINK_LIBRARIES ${PROMETHEUS_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${PROMETHEUS_INCLUDE_DIR})
endif()
# Only its header: the library is loaded when a model is downloaded (src/convert/hub/http.cc).
find_path(CURL_INCLUDE_DIR curl/curl.h REQUIRED)
set(QKV_DEPENDENCIES OpenMP::OpenMP_CXX qkv_dnnl hwy::hwy fmt::fmt nlohmann_json::nlohmann_json ICU::uc
                     OpenSSL::SSL OpenSSL::Crypto PkgConfig::SENTENCEPIECE PkgConfig::LIBZIP PkgConfig::YAML
                     PkgConfig::EXPAT PkgConfig::MD4C
                     ZLIB::ZLIB PkgConfig::ZSTD qkv_prometheus)
if(QKV_BUILD_APPS)
  find_dependency(CLI11 CONFIG)
endif()

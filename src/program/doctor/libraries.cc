#include "program/doctor/libraries.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <hwy/highway.h>
#include <openssl/crypto.h>
#include <unicode/uversion.h>
#include <yaml.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace qkv {
namespace {

std::string dotted(int major, int minor, int patch) { return fmt::format("{}.{}.{}", major, minor, patch); }

std::string onednn() {
  const dnnl_version_t* const v = dnnl_version();
  return dotted(v->major, v->minor, v->patch);
}

std::string icu() {
  UVersionInfo numbers;
  char text[U_MAX_VERSION_STRING_LENGTH];
  u_getVersion(numbers);
  u_versionToString(numbers, text);
  return text;
}

// The library is loaded without the symbols that downloads need, so that any version is reported.
std::string libcurl() {
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) return "";
  const auto info = reinterpret_cast<decltype(&::curl_version_info)>(::dlsym(library, "curl_version_info"));
  return info ? info(CURLVERSION_NOW)->version : "";
}

}  // namespace

std::vector<LibraryVersion> library_versions() {
  return {
      {"oneDNN", onednn()},
      {"Highway", dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
      {"ICU", icu()},
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"libzip", zip_libzip_version()},
      {"zlib", zlibVersion()},
      {"Zstandard", ZSTD_versionString()},
      {"libyaml", yaml_get_version_string()},
      {"libcurl", libcurl()},
      {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann/json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}};
}

}  // namespace qkv

#include "convert/hub/curl_library.h"

#include <dlfcn.h>

#include "core/fail.h"

namespace qkv {
namespace {

constexpr const char* kFile = "libcurl.so.4";  // the version of the interface since 2006
constexpr unsigned kOldest = 0x075500;         // 7.85.0, which has CURLOPT_PROTOCOLS_STR

template <class Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function) fail("{}: has no function {}; qkv needs libcurl 7.85 or later", kFile, name);
}

CurlLibrary load_curl() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) fail("{}: downloading models needs libcurl (Debian's package libcurl4): {}", kFile, ::dlerror());
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  find_function(library, "curl_global_init", global_init);
  find_function(library, "curl_version_info", version_info);
  if (const curl_version_info_data* found = version_info(CURLVERSION_NOW); found->version_num < kOldest)
    fail("{}: must be version 7.85 or later (is {})", kFile, found->version);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("{}: cannot be initialized", kFile);
  CurlLibrary functions;
  find_function(library, "curl_easy_init", functions.easy_init);
  find_function(library, "curl_easy_cleanup", functions.easy_cleanup);
  find_function(library, "curl_easy_reset", functions.easy_reset);
  find_function(library, "curl_easy_setopt", functions.easy_setopt);
  find_function(library, "curl_easy_perform", functions.easy_perform);
  find_function(library, "curl_easy_getinfo", functions.easy_getinfo);
  find_function(library, "curl_easy_strerror", functions.easy_strerror);
  find_function(library, "curl_slist_append", functions.slist_append);
  find_function(library, "curl_slist_free_all", functions.slist_free_all);
  find_function(library, "curl_url", functions.url);
  find_function(library, "curl_url_set", functions.url_set);
  find_function(library, "curl_url_get", functions.url_get);
  find_function(library, "curl_url_cleanup", functions.url_cleanup);
  find_function(library, "curl_free", functions.free);
  return functions;
}

}  // namespace

const CurlLibrary& curl() {
  static const CurlLibrary library = load_curl();
  return library;
}

}  // namespace qkv

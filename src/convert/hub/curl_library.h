// libcurl, loaded when the first model is downloaded. Linking it would load the 30 libraries that it uses at every
// start of the program, which takes as long as the start itself (docs/design/dependencies.md).
#pragma once

#include <curl/curl.h>

namespace qkv {

// The functions of libcurl that are used, under their names without the prefix curl_.
struct CurlLibrary {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_set) url_set;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_free) free;
};

// Throws Error if the library is not installed or too old. Thread-safe.
const CurlLibrary& curl();

}  // namespace qkv

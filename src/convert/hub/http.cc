#include "convert/hub/http.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <exception>

#include "core/fail.h"

namespace qkv {
namespace {

// libcurl, loaded when the first model is downloaded. Linking it would load the 30 libraries that it uses at every
// start of the program, which takes as long as the start itself (docs/design/dependencies.md).

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

constexpr const char* kCurlFile = "libcurl.so.4";  // the version of the interface since 2006
constexpr unsigned kOldestCurl = 0x075500;         // 7.85.0, which has CURLOPT_PROTOCOLS_STR

template <class Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function) fail("{}: has no function {}; qkv needs libcurl 7.85 or later", kCurlFile, name);
}

CurlLibrary load_curl() {
  void* const library = ::dlopen(kCurlFile, RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) fail("{}: downloading models needs libcurl (Debian's package libcurl4): {}", kCurlFile, ::dlerror());
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  find_function(library, "curl_global_init", global_init);
  find_function(library, "curl_version_info", version_info);
  if (const curl_version_info_data* found = version_info(CURLVERSION_NOW); found->version_num < kOldestCurl)
    fail("{}: must be version 7.85 or later (is {})", kCurlFile, found->version);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("{}: cannot be initialized", kCurlFile);
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

// Throws Error if the library is not installed or too old. Thread-safe.
const CurlLibrary& curl() {
  static const CurlLibrary library = load_curl();
  return library;
}

constexpr size_t kMaxHeaders = 256 << 10;  // bytes
constexpr size_t kMaxDropped = 1 << 20;    // bytes of an error's body, after which the transfer ends

struct Transfer {
  CURL* handle;
  TakeBody take;
  FunctionRef<void()> alive;
  HttpResponse response = {};
  size_t header_bytes = 0, dropped = 0;
  std::exception_ptr thrown = {};
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

size_t on_header(char* data, size_t, size_t count, void* to) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  const std::string_view line(data, count);
  transfer.header_bytes += count;
  if (transfer.header_bytes > kMaxHeaders) return CURL_WRITEFUNC_ERROR;
  if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // of an interim response
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  transfer.response.headers[name] = trim(line.substr(colon + 1));
  return count;
}

int status_of(CURL* handle) {
  long status = 0;
  curl().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t on_body(char* data, size_t, size_t count, void* to) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  transfer.response.status = status_of(transfer.handle);
  if (!transfer.response.ok()) {
    transfer.dropped += count;
    return transfer.dropped > kMaxDropped ? CURL_WRITEFUNC_ERROR : count;
  }
  try {
    transfer.take(transfer.response, {data, count});
    return count;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return CURL_WRITEFUNC_ERROR;
  }
}

int on_progress(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(to);
  if (transfer.thrown) return 1;
  try {
    transfer.alive();
    return 0;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 1;
  }
}

HttpResponse::Failure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return HttpResponse::Failure::unreachable;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return HttpResponse::Failure::interrupted;
    default:
      return HttpResponse::Failure::refused;
  }
}

// Returns a part of a URL, or "".
std::string part_of(const std::string& url, CURLUPart part) {
  const std::unique_ptr<CURLU, decltype(CurlLibrary::url_cleanup)> parsed(curl().url(), curl().url_cleanup);
  char* text = nullptr;
  if (curl().url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl().url_get(parsed.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
    return "";
  std::string found = text;
  curl().free(text);
  std::ranges::transform(found, found.begin(), [](unsigned char c) { return std::tolower(c); });
  return found;
}

}  // namespace

const std::string& HttpResponse::header(const std::string& name) const {
  static const std::string none;
  const auto found = headers.find(name);
  return found == headers.end() ? none : found->second;
}

struct Http::Handle {
  CURL* easy = curl().easy_init();
  ~Handle() { curl().easy_cleanup(easy); }
};

Http::Http(const HubSettings& settings) : settings_(settings), handle_(std::make_unique<Handle>()) {
  if (!handle_->easy) fail("libcurl: cannot be initialized");
}

Http::~Http() = default;

HttpResponse Http::send(const HttpRequest& request, TakeBody take, FunctionRef<void()> alive) {
  CURL* const handle = handle_->easy;
  Transfer transfer{handle, take, alive};
  transfer.response.url = request.url;
  std::array<char, CURL_ERROR_SIZE> reason = {};
  const auto set = [&](CURLoption option, auto value) { curl().easy_setopt(handle, option, value); };
  curl().easy_reset(handle);  // connections stay open
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "https,http");
  set(CURLOPT_USERAGENT, fmt::format("qkv/{}", QKV_VERSION).c_str());
  set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  if (request.begin > 0) set(CURLOPT_RANGE, fmt::format("{}-", request.begin).c_str());
  if (!settings_.certificates.empty()) set(CURLOPT_CAINFO, settings_.certificates.c_str());
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings_.timeout));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.timeout));
  set(CURLOPT_BUFFERSIZE, 512L << 10);
  set(CURLOPT_ERRORBUFFER, reason.data());
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  curl_slist* headers = nullptr;
  if (!request.token.empty())
    headers = curl().slist_append(headers, fmt::format("Authorization: Bearer {}", request.token).c_str());
  const std::unique_ptr<curl_slist, decltype(CurlLibrary::slist_free_all)> owner(headers, curl().slist_free_all);
  set(CURLOPT_HTTPHEADER, headers);

  const CURLcode code = curl().easy_perform(handle);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  HttpResponse response = std::move(transfer.response);
  response.status = status_of(handle);
  if (code != CURLE_OK && transfer.dropped <= kMaxDropped) {
    response.failure = failure_of(code);
    response.reason = reason[0] != '\0' ? reason.data() : curl().easy_strerror(code);
  }
  char* location = nullptr;
  curl().easy_getinfo(handle, CURLINFO_REDIRECT_URL, &location);
  if (location) response.location = location;
  curl_off_t seconds = 0;
  curl().easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
  response.retry_after = seconds;
  return response;
}

bool same_origin(const std::string& a, const std::string& b) {
  for (const CURLUPart part : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT})
    if (const std::string found = part_of(a, part); found.empty() || found != part_of(b, part)) return false;
  return true;
}

std::string without_password(const std::string& url) {
  const size_t scheme = url.find("://"), begin = scheme == url.npos ? 0 : scheme + 3;
  const size_t at = url.rfind('@');
  return at == url.npos || at < begin ? url : url.substr(0, begin) + "***" + url.substr(at);
}

std::string scheme_of(const std::string& url) { return part_of(url, CURLUPART_SCHEME); }

}  // namespace qkv

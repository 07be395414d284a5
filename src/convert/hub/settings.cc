#include "convert/hub/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "convert/hub/http.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/system/file_descriptor.h"

namespace qkv {
namespace {

constexpr size_t kMaxToken = 4096;  // bytes

// Returns the first of the variables that is set and not empty, or "".
std::string variable(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

std::string home() {
  const std::string found = variable({"HOME"});
  if (found.empty()) fail("HF_HOME: must be set, because HOME is not");
  return found;
}

// Returns a path of a variable, with `~` at its start replaced by the user's directory.
std::string path_of(const std::string& value) {
  return value == "~" || value.starts_with("~/") ? home() + value.substr(1) : value;
}

std::string hub_home() {
  if (const std::string found = variable({"HF_HOME"}); !found.empty()) return path_of(found);
  const std::string caches = variable({"XDG_CACHE_HOME"});
  return (caches.empty() ? home() + "/.cache" : path_of(caches)) + "/huggingface";
}

// Returns a token without the white space around it. It becomes a part of a header, so it must be one word.
std::string clean_token(std::string token, const std::string& where) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  token.erase(std::ranges::find_if_not(token.rbegin(), token.rend(), is_space).base(), token.end());
  token.erase(token.begin(), std::ranges::find_if_not(token, is_space));
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; }))
    fail("{}: must be one word of ASCII characters", where);
  return token;
}

std::string read_token() {
  if (const std::string found = variable({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}); !found.empty())
    return clean_token(found, "HF_TOKEN");
  const std::string named = variable({"HF_TOKEN_PATH"});
  const std::string path = named.empty() ? hub_home() + "/token" : path_of(named);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  return clean_token(read_file(path, kMaxToken, Accepts::unnamed_pipe), path);
}

bool is_true(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

}  // namespace

HubSettings read_hub_settings() {
  HubSettings settings;
  if (const std::string found = variable({"HF_ENDPOINT"}); !found.empty()) {
    settings.endpoint = found.substr(0, found.find_last_not_of('/') + 1);
    if (!found.starts_with("https://") && !found.starts_with("http://"))
      fail("HF_ENDPOINT: must start with https:// or http:// (is {})", excerpt(without_password(found)));
  }
  const std::string cache = variable({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  settings.cache = cache.empty() ? hub_home() + "/hub" : path_of(cache);
  settings.token = read_token();
  settings.offline = is_true(variable({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}));
  if (const std::string found = variable({"HF_HUB_DOWNLOAD_TIMEOUT"}); !found.empty()) {
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), settings.timeout);
    if (error != std::errc() || end != found.data() + found.size() || settings.timeout < 1 || settings.timeout > 3600)
      fail("HF_HUB_DOWNLOAD_TIMEOUT: must be between 1 and 3600 seconds (is {})", excerpt(found));
  }
  settings.certificates = variable({"SSL_CERT_FILE"});
  return settings;
}

}  // namespace qkv

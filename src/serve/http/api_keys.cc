#include "serve/http/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "serve/http/http_target.h"

namespace qkv {
namespace {

constexpr size_t kMostKeys = 10'000, kMostBytes = 4 << 20, kLongestName = 64, kShortestKey = 16, kLongestKey = 256;

using Sum = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Sum sum_of(std::string_view key) {
  Sum sum;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), sum.data());
  return sum;
}

// The text of a file, which is overwritten when it is no longer needed.
class SecretText {
 public:
  explicit SecretText(const std::string& path) {
    const FileDescriptor file = open_input(path, Accepts::unnamed_pipe);
    while (const size_t count = read_some(file.get(), std::as_writable_bytes(std::span(text_).subspan(size_)), path))
      size_ += count;
    if (size_ > kMostBytes) fail("{}: has more than {} bytes", path, kMostBytes);
  }
  ~SecretText() { OPENSSL_cleanse(text_.data(), size_); }
  SecretText(const SecretText&) = delete;

  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::vector<char> text_ = std::vector<char>(kMostBytes + 1);
  size_t size_ = 0;
};

bool is_client_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), is_allowed);
}

bool is_key(std::string_view key) {
  return key.size() >= kShortestKey && key.size() <= kLongestKey &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace

struct ApiKeys::Keys {
  explicit Keys(const std::string& path);
  void add(std::string_view line, size_t number, const std::string& path);

  std::vector<std::pair<Sum, std::string>> names;
  std::map<std::string, size_t, std::less<>> lines_of_names;
  std::map<Sum, size_t> lines_of_sums;
};

ApiKeys::Keys::Keys(const std::string& path) {
  const SecretText file(path);
  std::string_view rest = file.text();
  for (size_t number = 1; !rest.empty(); number++) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line[0] != '#') add(line, number, path);
  }
  if (names.empty()) fail("{}: has no keys; each line must be NAME KEY", path);
}

void ApiKeys::Keys::add(std::string_view line, size_t number, const std::string& path) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, space), key = line.substr(std::min(space + 1, line.size()));
  if (!is_client_name(name) || !is_key(key))
    fail(
        "{}: line {}: must be NAME KEY, with a name of 1 to {} letters, digits, dots, underscores and hyphens, and a "
        "key of {} to {} printable ASCII characters without spaces",
        path, number, kLongestName, kShortestKey, kLongestKey);
  if (names.size() == kMostKeys) fail("{}: line {}: has more than {} keys", path, number, kMostKeys);
  const Sum sum = sum_of(key);
  const auto [same_name, is_new_name] = lines_of_names.emplace(name, number);
  if (!is_new_name) fail("{}: line {}: has the name of line {}", path, number, same_name->second);
  const auto [same_key, is_new_key] = lines_of_sums.emplace(sum, number);
  if (!is_new_key) fail("{}: line {}: has the key of line {}", path, number, same_key->second);
  names.emplace_back(sum, name);
}

ApiKeys::ApiKeys(std::string path) : path_(std::move(path)) { reload(); }
ApiKeys::~ApiKeys() = default;

void ApiKeys::reload() {
  auto keys = std::make_shared<const Keys>(path_);
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

std::shared_ptr<const ApiKeys::Keys> ApiKeys::current() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

size_t ApiKeys::size() const { return current()->names.size(); }

std::optional<std::string> ApiKeys::name_of(std::string_view key) const {
  const auto keys = current();
  const Sum sum = sum_of(key);
  size_t place = keys->names.size();
  for (size_t i = 0; i < keys->names.size(); i++)
    if (CRYPTO_memcmp(keys->names[i].first.data(), sum.data(), sum.size()) == 0) place = i;
  if (place == keys->names.size()) return {};
  return keys->names[place].second;
}

std::string_view presented_key(const RequestHead& head) {
  const std::string_view authorization = head.find("authorization");
  const size_t space = std::min(authorization.find(' '), authorization.size());
  if (equals_ignoring_case(authorization.substr(0, space), "bearer")) {
    const size_t begin = std::min(authorization.find_first_not_of(' ', space), authorization.size());
    return authorization.substr(begin);
  }
  return head.find("x-api-key");
}

}  // namespace qkv

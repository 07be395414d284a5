// The keys that clients identify themselves with. Only their SHA-256 sums are kept, and no error contains a key.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/request_reader.h"

namespace qkv {

class ApiKeys {
 public:
  // Reads a file of lines "NAME KEY", where NAME is 1 to 64 of [A-Za-z0-9._-] and KEY 16 to 256 of [!-~]. Lines that
  // begin with # and empty lines are skipped. Throws Error, naming the file and the line, for other lines, names or
  // keys that occur twice, no key at all, and more than 10,000 keys or 4 MiB.
  explicit ApiKeys(std::string path);
  ~ApiKeys();

  // Returns the name of a key; nothing if it is unknown. The time does not depend on which key it is, or how much of it
  // is right. Any thread.
  std::optional<std::string> name_of(std::string_view key) const;

  // Reads the file again. Throws Error as the constructor does, and then keeps the keys that were read before. Any
  // thread.
  void reload();
  size_t size() const;

 private:
  struct Keys;
  std::shared_ptr<const Keys> current() const;

  const std::string path_;
  mutable std::mutex mutex_;  // guards keys_
  std::shared_ptr<const Keys> keys_;
};

// Returns the key that a request presents, in "Authorization: Bearer KEY" or else in X-API-Key; "" if there is none.
std::string_view presented_key(const RequestHead& head);

}  // namespace qkv

// SHA-256 (FIPS 180-4) of bytes given in parts, by OpenSSL's libcrypto, as printed by `sha256sum`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace qkv {

class Sha256 {
 public:
  Sha256();  // throws Error if the system's libcrypto has no SHA-256
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  std::string hex();  // 64 digits, once, after all bytes

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace qkv

// SHA-256 and SHA-1 (FIPS 180-4) of bytes given in parts, by OpenSSL's libcrypto, as printed by `sha256sum`, `sha1sum`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace qkv {

class Digest {
 public:
  enum class Algorithm { sha256, sha1 };

  explicit Digest(Algorithm algorithm);  // throws Error if the system's libcrypto lacks it
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view bytes);
  // The sum, once, after all bytes: 32 or 20 bytes, or 64 or 40 digits.
  std::string bytes();
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

struct Sha256 : Digest {
  Sha256() : Digest(Algorithm::sha256) {}
};

}  // namespace qkv

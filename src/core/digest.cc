#include "core/digest.h"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "core/fail.h"

namespace qkv {

struct Digest::Context {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Digest::Digest(Algorithm algorithm) : context_(std::make_unique<Context>()) {
  const EVP_MD* const function = algorithm == Algorithm::sha256 ? EVP_sha256() : EVP_sha1();
  if (EVP_DigestInit_ex(context_->state.get(), function, nullptr) != 1) fail("digest: libcrypto refuses the algorithm");
}

Digest::~Digest() = default;

void Digest::add(std::string_view bytes) {
  if (EVP_DigestUpdate(context_->state.get(), bytes.data(), bytes.size()) != 1) fail("digest: libcrypto refuses bytes");
}

std::string Digest::bytes() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_->state.get(), digest.data(), &size) != 1) fail("digest: libcrypto gives no sum");
  return {digest.begin(), digest.begin() + size};
}

std::string Digest::hex() {
  const std::string sum = bytes();
  return fmt::format("{:02x}",
                     fmt::join(std::span(reinterpret_cast<const unsigned char*>(sum.data()), sum.size()), ""));
}

}  // namespace qkv

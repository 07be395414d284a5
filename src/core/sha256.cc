#include "core/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "core/fail.h"

namespace qkv {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (EVP_DigestInit_ex(context_->state.get(), EVP_sha256(), nullptr) != 1) fail("sha256: libcrypto refuses it");
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  if (EVP_DigestUpdate(context_->state.get(), bytes.data(), bytes.size()) != 1) fail("sha256: libcrypto refuses bytes");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  if (EVP_DigestFinal_ex(context_->state.get(), digest.data(), nullptr) != 1) fail("sha256: libcrypto gives no sum");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace qkv

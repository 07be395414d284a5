// The body of a request of Gorse's clients, or of one for recommendations in the server's own form, for a server with a
// tiny recommender; then the recommendations for a user of this name, whose events the requests before may have added,
// and the items that are found by it.
#include <fmt/format.h>

#include "fuzz/reader.h"
#include "fuzz/served.h"

namespace {

std::string percent_encoded(std::string_view text) {
  std::string all;
  for (const char c : text) all += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return all;
}

}  // namespace

void qkv::fuzz::fuzz_server_gorse(std::string_view bytes) {
  serve({"POST", "/api/session/recommend?n=3", kJson}, bytes);
  serve({"POST", "/api/feedback", kJson}, bytes);
  serve({"POST", "/v1/recommend", kJson}, bytes);
  const size_t length = bytes.find_first_of("\",");
  const std::string name = percent_encoded(bytes.substr(0, length));
  for (const std::string& target :
       {fmt::format("/api/recommend/{}?n=4&offset=1", name), fmt::format("/v1/items?n=2&q={}", name)})
    if (target.size() < 2000) serve({"GET", target, kJson}, "");
}

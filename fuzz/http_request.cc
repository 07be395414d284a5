// Bytes of an HTTP connection: any cut into pieces gives the same requests, and what is taken says clearly where it
// ends.
#include <algorithm>
#include <random>

#include "fuzz/reader.h"
#include "tests/serve/read_requests.h"

namespace {

std::vector<std::string_view> cut_at_random(std::string_view bytes) {
  std::minstd_rand random(static_cast<uint32_t>(bytes.size()));
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), 1 + random() % (random() % 2 ? 4 : 400));
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}

}  // namespace

void qkv::fuzz::fuzz_http_request(std::string_view bytes) {
  const testing::ReadRequests whole = testing::read_pieces({bytes}, 4096);
  const testing::ReadRequests parts = testing::read_pieces(cut_at_random(bytes), 4096);
  require(whole.requests == parts.requests && whole.status == parts.status, "any pieces give the same requests");
  for (const std::string& request : whole.requests)
    require(request.size() <= bytes.size() + 8, "a request holds no more than what arrived");
  if (whole.status != 0) throw Error(whole.message);
}

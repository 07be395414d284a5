// Reads all requests of a connection, for tests of the reader.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/http_reply.h"
#include "serve/http/request_reader.h"

namespace qkv::testing {

// Method, path and body of each request, and the status of the refusal that ended the connection; 0: none did.
struct ReadRequests {
  std::vector<std::string> requests;
  int status = 0;
  std::string message = {};

  bool operator==(const ReadRequests&) const = default;
};

inline void PrintTo(const ReadRequests& read, std::ostream* out) {
  for (const std::string& request : read.requests) *out << request << "; ";
  *out << read.status << " " << read.message;
}

// Reads the requests of a connection, whose bytes arrive in these pieces; bodies may have `most` bytes.
inline ReadRequests read_pieces(const std::vector<std::string_view>& pieces, uint64_t most = 1000) {
  ReadRequests read;
  auto reader = std::make_unique<RequestReader>();
  try {
    for (std::string_view piece : pieces)
      while (true) {
        const bool had_head = reader->has_head();
        piece.remove_prefix(reader->put(piece));
        if (!had_head && reader->has_head()) reader->read_body(most);
        if (had_head == reader->has_head() && !reader->is_done()) break;
        if (!reader->is_done()) continue;
        read.requests.push_back(reader->head().method + " " + reader->head().target.path + " " + reader->body());
        if (!reader->head().keep_alive) return read;  // the connection ends
        reader = std::make_unique<RequestReader>();
        if (piece.empty()) break;
      }
  } catch (const HttpError& error) {
    read.status = error.status;
    read.message = error.what();
  }
  return read;
}

inline ReadRequests read_all(const std::string& bytes, uint64_t most = 1000) { return read_pieces({bytes}, most); }

}  // namespace qkv::testing

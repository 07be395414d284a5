// Reads streams of HTTP requests with the server's reader, for tests that compare it with other readers.
// Standard input: streams, each after its length in 4 bytes, little-endian. Standard output: for each a line of JSON,
// [STATUS, REQUEST...]: the status of the refusal that ended it, or 0, and the requests before it, each [method, host,
// path, query, minor version, keep-alive, headers, body]. Headers and body are in Latin-1.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "serve/http/http_reply.h"
#include "serve/http/request_reader.h"

namespace {

using nlohmann::json;

constexpr uint64_t kMostBody = 1 << 20;

std::string from_latin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

json to_json(qkv::RequestReader& reader) {
  const qkv::RequestHead& head = reader.head();
  json query = json::array(), headers = json::array();
  for (const auto& [name, value] : head.target.query) query.push_back({name, value});
  for (const auto& [name, value] : head.fields) headers.push_back({name, from_latin1(value)});
  return {head.method, head.target.host, head.target.path, query,
          head.minor,  head.keep_alive,  headers,          from_latin1(reader.body())};
}

json read_stream(std::string_view bytes) {
  json requests = json::array({0});
  try {
    while (!bytes.empty()) {
      qkv::RequestReader reader;
      bytes.remove_prefix(reader.put(bytes));
      if (!reader.has_head()) break;
      reader.read_body(kMostBody);
      bytes.remove_prefix(reader.put(bytes));
      if (!reader.is_done()) break;
      requests.push_back(to_json(reader));
      if (!reader.head().keep_alive) break;  // the connection ends
    }
  } catch (const qkv::HttpError& error) {
    requests[0] = error.status;
  }
  return requests;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  char length[4];
  while (std::cin.read(length, 4)) {
    uint32_t size = 0;
    std::memcpy(&size, length, 4);
    std::string bytes(size, '\0');
    if (!std::cin.read(bytes.data(), size)) return 1;
    std::cout << read_stream(bytes).dump() << '\n';
  }
}

// A server of tiny models in this process, without sockets: requests go through its routes, its threads and its models.
#pragma once

#include <string>
#include <string_view>

namespace qkv::fuzz {

struct Served {
  std::string_view method, target, type;  // of the request; type: of its body
};

constexpr std::string_view kJson = "application/json", kForm = "application/x-www-form-urlencoded";

// Sends a request with this body, and waits for its answer. A finding is an answer with a status of 5xx, one that is
// not valid JSON, events of JSON or, for clients of Gorse, a line of text, and anything that still waits or runs after
// it. Some requests, as their sizes say, are sent again by a client who leaves before the answer is complete.
void serve(const Served& request, std::string_view body);

}  // namespace qkv::fuzz

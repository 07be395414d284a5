// The body of a request for a completion, of a prompt or of a conversation, for a server with a tiny language model.
#include "fuzz/reader.h"
#include "fuzz/served.h"

void qkv::fuzz::fuzz_server_completions(std::string_view bytes) {
  serve({"POST", "/v1/completions", kJson}, bytes);
  serve({"POST", "/v1/chat/completions", kJson}, bytes);
}

// The body of a request for embeddings, of OpenAI's clients and of TEI's, for a server with a tiny encoder.
#include "fuzz/reader.h"
#include "fuzz/served.h"

void qkv::fuzz::fuzz_server_embeddings(std::string_view bytes) {
  serve({"POST", "/v1/embeddings", kJson}, bytes);
  serve({"POST", "/embed", kJson}, bytes);
}

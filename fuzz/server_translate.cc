// The body of a request to translate, to find the language of a text or to show attention, for a server with a tiny
// translator.
#include "fuzz/reader.h"
#include "fuzz/served.h"

void qkv::fuzz::fuzz_server_translate(std::string_view bytes) {
  serve({"POST", "/v1/translate", kJson}, bytes);
  serve({"POST", "/v1/attend", kJson}, bytes);
  for (const std::string_view type : {kJson, kForm}) {
    serve({"POST", "/translate", type}, bytes);
    serve({"POST", "/detect", type}, bytes);
  }
}

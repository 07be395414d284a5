// JSON text: what is read is written and read again as the same value.
#include "core/json.h"

#include <nlohmann/json.hpp>

#include "fuzz/reader.h"

void qkv::fuzz::fuzz_json(std::string_view bytes) {
  require(parse_json(json_string(bytes), "a string").is_string(), "any bytes can be quoted");
  const nlohmann::json value = parse_json(bytes, "text");
  require(parse_json(value.dump(), "dump") == value, "what is written is read as the same value");
}

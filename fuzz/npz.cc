// A Marian model: arrays in a zip archive, one of which is a configuration in YAML. The same bytes as YAML.
#include <nlohmann/json.hpp>

#include "convert/formats/yaml.h"
#include "fuzz/import.h"

void qkv::fuzz::fuzz_npz(std::string_view bytes) {
  static const SourceDirectory source("model.npz", {{"vocab.yml", "</s>: 0\n<unk>: 1\na: 2\nb: 3\n"}});
  const MemoryFile file(bytes);
  attempt([&] { import_translator(source.path(), {.tokens = true}); });
  attempt([&] { parse_yaml(bytes, "model.yml"); });
  attempt([&] { parse_yaml_vocabulary(bytes, "vocab.yml"); });
}

// The small files of imported models: settings and lists of tokens.
#include "fuzz/reader.h"
#include "import/architecture.h"
#include "import/translator_text.h"
#include "import/vocabulary_files.h"
#include "text/vocabulary.h"

void qkv::fuzz::fuzz_settings(std::string_view bytes) {
  for (const Architecture* architecture : all_architectures())
    attempt([&] { check(read_config(*architecture, Settings(bytes, "config.json"))); });
  attempt([&] { read_bad_words(Settings(bytes, "config.json")); });
  attempt([&] { Vocabulary(parse_piece_ids(bytes, "vocab.json"), "vocab.json"); });
  attempt([&] { Vocabulary(pieces_from_lines(bytes, "vocabulary.txt"), "vocabulary.txt"); });
  attempt([&] { added_tokens_of(Settings(bytes, "tokenizer_config.json")); });
  attempt([&] {
    const std::vector<std::string> pieces = pieces_from_json(bytes, "vocabulary.json");
    require(pieces_from_json(pieces_to_json(pieces), "again") == pieces, "a list of tokens survives writing");
  });
}

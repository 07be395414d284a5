// The text of a language model in the Hugging Face layout: which tokeniser it has, and which tokens stand around a
// text.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "import/imported_model.h"

namespace qkv {
namespace {

using nlohmann::json;

// eos_token_id, a number or a list of them: of generation_config.json or else of config.json.
std::vector<std::string> ends_of(const ModelFiles& files, const Settings& config, const Tokenizer& tokenizer) {
  std::vector<std::string> ends;
  const auto read = [&](const Settings& s) {
    const json* found = s.find("eos_token_id");
    if (!found) return;
    for (const json& id : found->is_array() ? *found : json::array({*found})) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(tokenizer.size()))
        fail("{}: eos_token_id is {}, wanted ids below {}", s.where(), found->dump(), tokenizer.size());
      ends.push_back(tokenizer.piece(id.get<int32_t>()));
    }
  };
  if (files.has("generation_config.json"))
    read(Settings(files.open_small("generation_config.json")->text(), files.path("generation_config.json")));
  if (ends.empty()) read(config);
  return ends;
}

}  // namespace

LanguageText read_language_text(const ModelFiles& files, const Settings& config) {
  const Tokenizer tokenizer = Tokenizer::load(files.path("tokenizer.model"));
  LanguageConfig language;
  language.unit = TextUnit::pieces;
  language.start = tokenizer.piece(tokenizer.start());
  language.ends = ends_of(files, config, tokenizer);
  return {language, TextCodec::of_pieces(tokenizer)};
}

}  // namespace qkv

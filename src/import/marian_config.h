// config.json of a MarianMT model in the Hugging Face layout.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "import/settings.h"
#include "qkv/config.h"

namespace qkv {

struct MarianConfig {
  ModelConfig model;
  int64_t start = 0, end = 0;  // ids
  std::vector<int64_t> never;  // ids
};

// The shape of the model. Throws Error, naming the field: one that is missing or of a wrong type, and what there is not
// here: a decoder unlike the encoder, pre-norm, a norm of embeddings, another activation.
ModelConfig parse_marian_model(const Settings& settings);
// The fields that are read back as this configuration, as far as they can say it.
nlohmann::json marian_model_json(const ModelConfig& config);

// The same with the tokens. Error begins with `where`.
MarianConfig parse_marian_config(std::string_view text, const std::string& where);

// Ids that no translation may hold, of `bad_words_ids` in config.json or generation_config.json. Throws Error for a
// sequence of several tokens.
std::vector<int64_t> parse_bad_words(std::string_view text, const std::string& where);

// vocab.json: {piece: id}, where the ids are 0, 1, … without a gap. Pieces in the order of their ids. Throws Error.
std::vector<std::string> parse_piece_ids(std::string_view text, const std::string& where);

}  // namespace qkv

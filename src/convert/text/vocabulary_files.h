// Tokenizers in the files that came before tokenizer.json: vocab.json with merges.txt, and vocab.txt. Missing
// settings are taken from tokenizer_config.json, special_tokens_map.json, added_tokens.json and the defaults of the
// classes in transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/model_files.h"
#include "convert/settings.h"
#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

// Returns the pieces of vocab.json, {piece: id}, in the order of their ids, which must be 0, 1, … without a gap. Throws
// Error.
std::vector<std::string> parse_piece_ids(std::string_view text, const std::string& where);

// Returns tokenizer_config.json, or an empty object if there is no such file.
Settings read_tokenizer_config(const ModelFiles& files);

// Returns the token that a file of settings names by "bos_token" and the like: a string, or an object with its
// "content"; "" if it is missing.
std::string token_of(const Settings& settings, const std::string& name);

// Returns the tokens of "added_tokens_decoder" in the order of their ids; none if it is missing.
std::vector<AddedToken> added_tokens_of(const Settings& settings);

// Tokens that a text may spell, and those of them that take the spaces before or after them.
struct SpelledTokens {
  std::vector<std::string> all, strips_left, strips_right;
};

// Returns the tokens that transformers finds in a text of a model whose pieces are a list: those of
// tokenizer_config.json, special_tokens_map.json and added_tokens.json, and those of the class, as far as they are
// pieces, in the order of these. `mask`, one of them, takes the spaces before it, unless a file says otherwise. Throws
// Error for a token that must be a word of its own.
SpelledTokens spelled_tokens(const ModelFiles& files, std::vector<std::string> of_class, const std::string& mask,
                             const std::vector<std::string>& pieces);

// Reads vocab.json and merges.txt of GPT2Tokenizer, RobertaTokenizer or Qwen2Tokenizer. `tokenizer_class` is the class
// if tokenizer_config.json names none. Throws Error, naming file and field.
TokenizerSpec read_vocabulary_and_merges(const ModelFiles& files, const std::string& tokenizer_class);

// Reads vocab.txt of BertTokenizer and its relatives, among them MPNetTokenizer, one piece per line.
TokenizerSpec read_vocabulary_lines(const ModelFiles& files);

}  // namespace qkv

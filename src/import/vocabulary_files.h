// Tokenisers in the files that came before tokenizer.json: vocab.json with merges.txt, and vocab.txt. What they leave
// out is what the classes of transformers have, and tokenizer_config.json, special_tokens_map.json and
// added_tokens.json say.
#pragma once

#include "import/model_files.h"
#include "import/settings.h"
#include "text/hugging_face_tokenizer.h"

namespace qkv {

// tokenizer_config.json, or an empty object where there is none.
Settings read_tokenizer_config(const ModelFiles& files);

// A token of settings that are named "bos_token" and so on: a string, or an object with its "content"; "" where it is
// missing.
std::string token_of(const Settings& settings, const std::string& name);

// The tokens of "added_tokens_decoder", by id; none where it is missing.
std::vector<AddedToken> added_tokens_of(const Settings& settings);

// vocab.json and merges.txt of the classes GPT2Tokenizer, RobertaTokenizer and Qwen2Tokenizer. The class is that of
// tokenizer_config.json, or else follows from model_type of `config`, which is config.json. Throws Error, naming file
// and field.
TokenizerSpec read_vocabulary_and_merges(const ModelFiles& files, const Settings& config);

// vocab.txt of BertTokenizer and its kin, a piece a line.
TokenizerSpec read_vocabulary_lines(const ModelFiles& files);

}  // namespace qkv

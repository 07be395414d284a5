// The token ids that an embedder or a classifier reads of a text, in inference and in training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/runs/run_kinds.h"
#include "qkv/embedder.h"

namespace qkv {

// Returns the tokens of valid UTF-8 text; `where` names the text in errors.
using EncodeText = std::function<std::vector<int32_t>(const std::string& text, const std::string& where)>;

// Returns the tokens of a text with the prefix, without the tokens around it. Throws Error, beginning with `where`, for
// text that is not valid UTF-8.
std::vector<int32_t> inner_ids(const EmbeddingConfig& config, const EncodeText& encode, const std::string& text,
                               const std::string& where);
// The same for the codec of a run.
std::vector<int32_t> inner_ids(const EncoderRun& run, const std::string& text, const std::string& where);

// Puts the tokens of a text between those around it, without its last ones if all together are more than max_length,
// which is at least one more than the tokens around it.
EmbedderTokens between_edges(const TextEdges& edges, std::vector<int32_t> ids, int64_t max_length);

}  // namespace qkv

#include "decode/encoder/text_ids.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {

std::vector<int32_t> inner_ids(const EmbeddingConfig& config, const EncodeText& encode, const std::string& text,
                               const std::string& where) {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string::npos)
    fail("{}: byte {} is not valid UTF-8{}", where, bad + 1, mark_hint(text));
  return encode(prepare_text(config, text), where);
}

std::vector<int32_t> inner_ids(const EncoderRun& run, const std::string& text, const std::string& where) {
  const auto encode = [&](const std::string& prepared, const std::string& name) {
    return run.codec.encode(prepared, name);
  };
  return inner_ids(run.embedding, encode, text, where);
}

EmbedderTokens between_edges(const TextEdges& edges, std::vector<int32_t> ids, int64_t max_length) {
  const int64_t around = std::ssize(edges.before) + std::ssize(edges.after), all = std::ssize(ids) + around;
  ids.resize(std::min(ids.size(), to_size(max_length - around)));
  ids.insert(ids.begin(), edges.before.begin(), edges.before.end());
  ids.insert(ids.end(), edges.after.begin(), edges.after.end());
  return {std::move(ids), all};
}

}  // namespace qkv

// Attention weights as JSON: float32 numbers with the fewest digits that read back as the same float32.
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "eval/attention_words.h"

namespace qkv {

// Objects keep their order. Numbers are float, so that 0.1f is written as 0.1.
using FloatJson =
    nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;

namespace {

// Returns [layer][head][row][column].
FloatJson layers_of(const AttentionKind& kind, std::vector<float> AttentionHead::*numbers) {
  FloatJson layers = FloatJson::array();
  for (const std::vector<AttentionHead>& layer : kind.layers) {
    FloatJson heads = FloatJson::array();
    for (const AttentionHead& head : layer) {
      FloatJson rows = FloatJson::array();
      for (auto row = (head.*numbers).begin(); row != (head.*numbers).end(); row += std::ssize(kind.columns))
        rows.push_back(std::vector<float>(row, row + std::ssize(kind.columns)));
      heads.push_back(std::move(rows));
    }
    layers.push_back(std::move(heads));
  }
  return layers;
}

}  // namespace

std::string attention_to_json(const AttentionMap& map) {
  check(map);
  FloatJson attention = FloatJson::array();
  for (const AttentionKind& kind : map.kinds) {
    FloatJson entry = FloatJson::object();
    entry["kind"] = kind.name;
    if (kind.method != AttentionMethod::weights) entry["method"] = name_of(kind.method);
    entry["rows"] = kind.rows;
    entry["columns"] = kind.columns;
    entry["layers"] = layers_of(kind, &AttentionHead::weights);
    if (!kind.layers.front().front().values.empty()) entry["values"] = layers_of(kind, &AttentionHead::values);
    attention.push_back(std::move(entry));
  }
  FloatJson json = FloatJson::object();
  json["source"] = map.source;
  json["target"] = map.target;
  json["attention"] = std::move(attention);
  for (const TokenAttribution& token : map.tokens) {
    FloatJson entry = FloatJson::object();
    entry["piece"] = token.piece;
    entry["log_probability"] = static_cast<float>(token.log_probability);
    entry["baseline"] = static_cast<float>(token.baseline);
    entry["sum"] = static_cast<float>(token.sum);
    json["tokens"].push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, FloatJson::error_handler_t::replace);
}

}  // namespace qkv

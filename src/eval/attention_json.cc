// Attention weights as JSON: float32 numbers with the fewest digits that read back as the same float32.
#include <nlohmann/json.hpp>

#include "eval/attention_words.h"

namespace qkv {

// Objects keep their order. Numbers are float, so that 0.1f is written as 0.1.
using FloatJson =
    nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;

std::string attention_to_json(const AttentionMap& map) {
  check(map);
  FloatJson attention = FloatJson::array();
  for (const AttentionKind& kind : map.kinds) {
    FloatJson layers = FloatJson::array();
    for (const std::vector<AttentionHead>& layer : kind.layers) {
      FloatJson heads = FloatJson::array();
      for (const AttentionHead& head : layer) {
        FloatJson rows = FloatJson::array();
        for (auto row = head.weights.begin(); row != head.weights.end(); row += std::ssize(kind.columns))
          rows.push_back(std::vector<float>(row, row + std::ssize(kind.columns)));
        heads.push_back(std::move(rows));
      }
      layers.push_back(std::move(heads));
    }
    FloatJson entry = FloatJson::object();
    entry["kind"] = kind.name;
    entry["rows"] = kind.rows;
    entry["columns"] = kind.columns;
    entry["layers"] = std::move(layers);
    attention.push_back(std::move(entry));
  }
  FloatJson json = FloatJson::object();
  json["source"] = map.source;
  json["target"] = map.target;
  json["attention"] = std::move(attention);
  return json.dump(-1, ' ', false, FloatJson::error_handler_t::replace);
}

}  // namespace qkv

// The attention map as a self-contained HTML page, made of the files in src/eval/assets. The server's page shares those
// named attention_view. The data are JSON; the weights of each head are base64 of 16-bit integers, round(65535 w).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fields.h"
#include "core/placeholders.h"
#include "eval/assets/attention.css.h"
#include "eval/assets/attention.html.h"
#include "eval/assets/attention.js.h"
#include "eval/assets/attention_view.css.h"
#include "eval/assets/attention_view.html.h"
#include "eval/assets/attention_view.js.h"
#include "eval/attention_words.h"

namespace qkv {

namespace {

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; k++) group = group << 8 | (k < n ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; k++) text += k <= n ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string packed(const std::vector<float>& weights) {
  std::vector<uint8_t> bytes;
  bytes.reserve(2 * weights.size());
  for (const float w : weights) {
    const float inside = w > 0 ? std::min(w, 1.0f) : 0.0f;  // NaN becomes 0
    const auto integer = static_cast<uint16_t>(std::lround(65535 * inside));
    bytes.push_back(static_cast<uint8_t>(integer & 255));
    bytes.push_back(static_cast<uint8_t>(integer >> 8));
  }
  return base64(bytes);
}

// [{"word": "transformer", "pieces": ["trans", "former"]}, …]
nlohmann::json axis(const std::vector<std::string>& pieces) {
  nlohmann::json words = nlohmann::json::array();
  for (const Word& word : words_of(pieces)) {
    nlohmann::json texts = nlohmann::json::array();
    for (size_t i = word.begin; i < word.end; i++) texts.push_back(piece_text(pieces[i]));
    words.push_back({{"word", word.text}, {"pieces", std::move(texts)}});
  }
  return words;
}

}  // namespace

std::string attention_to_html(const AttentionMap& map) {
  check(map);
  nlohmann::json kinds = nlohmann::json::array();
  for (const AttentionKind& kind : map.kinds) {
    nlohmann::json layers = nlohmann::json::array();
    for (const std::vector<AttentionHead>& layer : kind.layers) {
      nlohmann::json heads = nlohmann::json::array();
      for (const AttentionHead& head : layer) heads.push_back(packed(head.weights));
      layers.push_back(std::move(heads));
    }
    const bool named = kind.method != AttentionMethod::weights;
    kinds.push_back({{"name", named ? fmt::format("{}-{}", kind.name, name_of(kind.method)) : kind.name},
                     {"causal", kind.causal},
                     {"rows", axis(kind.rows)},
                     {"columns", axis(kind.columns)},
                     {"layers", std::move(layers)}});
  }
  const nlohmann::json data = {{"source", map.source}, {"target", map.target}, {"kinds", std::move(kinds)}};
  const std::string style = std::string(kAttentionCss).append(kAttentionViewCss);
  const std::string script = std::string(kAttentionViewJs).append("\n").append(kAttentionJs);
  return fill_in(kAttentionHtml,
                 {{"{{style}}", style},
                  {"{{view}}", kAttentionViewHtml},
                  {"{{data}}", inside_script(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))},
                  {"{{script}}", script}});
}

}  // namespace qkv

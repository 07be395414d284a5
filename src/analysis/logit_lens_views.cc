// The logit lens as tables for a terminal, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/table_text.h"
#include "qkv/logit_lens.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kLensCell = 17;  // columns

// Returns one table: a row for each layer, and the columns [begin, end) of the tokens.
std::string table(const LogitLens& lens, size_t begin, size_t end,
                  const std::function<std::string(const LensPrediction&)>& cell) {
  const auto line_of = [&](const std::string& name, const std::function<std::string(size_t)>& text) {
    std::string line = fitted(name, kTableMargin);
    for (size_t n = begin; n < end; n++) line += fitted(text(n), kLensCell - 1) + " ";
    return trimmed_line(line);
  };
  std::string text = line_of("read", [&](size_t n) { return lens.read[n]; });
  for (size_t l = 0; l < lens.layers.size(); l++)
    text += line_of(layer_name(l), [&](size_t n) { return cell(lens.layers[l][n]); });
  return text;
}

}  // namespace

std::string lens_to_text(const LogitLens& lens) {
  constexpr size_t band = (kTableLine - kTableMargin) / kLensCell;
  const auto token = [](const LensPrediction& p) { return fmt::format("{:.2f} {}", p.probability, p.token); };
  const auto rank = [](const LensPrediction& p) {
    return fmt::format("{:.2f} rank {}", p.answer_probability, p.answer_rank);
  };
  std::string text;
  for (const auto& [title, cell] : {std::pair<const char*, std::function<std::string(const LensPrediction&)>>{
                                        "The most probable next token after each layer, with its probability", token},
                                    {"The probability and the rank of the last layer's token", rank}}) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", title);
    for (size_t begin = 0; begin < lens.read.size(); begin += band)
      text += "\n" + table(lens, begin, std::min(lens.read.size(), begin + band), cell);
  }
  return text;
}

std::string lens_to_json(const LogitLens& lens) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const auto& layer : lens.layers) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (const LensPrediction& p : layer)
      row.push_back({{"token", p.token},
                     {"probability", p.probability},
                     {"answer_rank", p.answer_rank},
                     {"answer_probability", p.answer_probability}});
    layers.push_back(std::move(row));
  }
  const nlohmann::ordered_json json = {{"source", lens.source},
                                       {"target", lens.target},
                                       {"read", lens.read},
                                       {"answers", lens.answers},
                                       {"layers", std::move(layers)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace qkv

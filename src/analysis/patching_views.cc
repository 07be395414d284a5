// Activation patching as a table for a terminal, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/table_text.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "qkv/patching.h"
#include "text/visible.h"

namespace qkv {
namespace {

// A share in percent, without a sign for one that is rounded to 0.
std::string percent(double share) { return fmt::format("{}", std::lround(100 * share)); }

std::string heading(const Patching& p) {
  const std::string score =
      p.wrong.empty() ? fmt::format("log p({})", p.answer) : fmt::format("logit({}) - logit({})", p.answer, p.wrong);
  const std::string where = is_head(p.part) ? "at all tokens" : "at one token";
  return fmt::format("{}: clean {:.3f}, corrupted {:.3f}\nRecovered by the clean {} of each {} layer {}, in percent\n",
                     score, p.clean_score, p.corrupted_score, name_of(p.part), name_of(p.stack), where);
}

}  // namespace

std::string patching_to_text(const Patching& p) {
  constexpr size_t band = (kTableLine - kTableMargin) / 8;
  const bool by_head = is_head(p.part);
  std::string text = heading(p);
  for (size_t begin = 0; begin < to_size(p.columns); begin += band) {
    const size_t end = std::min(to_size(p.columns), begin + band);
    const auto line = [&](const std::string& name, const auto& cell) {
      std::string row = fitted(name, kTableMargin);
      for (size_t n = begin; n < end; n++) row += fitted(cell(n), 7) + " ";
      text += trimmed_line(row);
    };
    text += '\n';
    if (by_head) {
      line("head", [](size_t n) { return fmt::format("{}", n + 1); });
    } else {
      line("clean", [&](size_t n) { return p.clean[n]; });
      line("corrupted", [&](size_t n) { return p.corrupted[n]; });
    }
    const size_t first = p.part == PatchedPart::residual ? 0 : 1;
    for (size_t l = 0; l < to_size(p.layers); l++)
      line(layer_name(first + l), [&](size_t n) { return percent(p.recovered[l * to_size(p.columns) + n]); });
  }
  return text;
}

std::string patching_to_json(const Patching& p) {
  const auto rows = [&](const std::vector<double>& values) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (auto row = values.begin(); row != values.end(); row += p.columns)
      all.push_back(std::vector<double>(row, row + p.columns));
    return all;
  };
  nlohmann::ordered_json json = {
      {"part", name_of(p.part)},
      {"stack", name_of(p.stack)},
      {"clean", p.clean},
      {"corrupted", p.corrupted},
      {"answer", p.answer},
      {"wrong", p.wrong.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(p.wrong)},
      {"clean_score", p.clean_score},
      {"corrupted_score", p.corrupted_score},
      {"scores", rows(p.scores)},
      {"recovered", rows(p.recovered)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace qkv

// Advice on a text, and the report as JSON.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "program/corpus/corpus.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

std::string names_of(const PairReport& text) { return fmt::format("{}", fmt::join(text.files, ", ")); }

int64_t count_of(const PairReport& text, std::string_view name) {
  for (const Defect& defect : text.defects)
    if (defect.name == name) return defect.pairs;
  return 0;
}

double share(int64_t pairs, const PairReport& text) {
  return text.pairs > 0 ? static_cast<double>(pairs) / static_cast<double>(text.pairs) : 0;
}

std::string counted(int64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

void advise(const PairReport& text, bool is_dev, std::vector<std::string>& advice) {
  const std::string names = names_of(text);
  if (text.files.empty()) return;
  if (text.pairs == 0) return advice.push_back(names + ": has no pairs");
  if (text.swapped)
    return advice.push_back(names + ": source and target are in another order than in the training text");
  if (count_of(text, "encoding") > 0)
    advice.push_back(names + ": training refuses text that is not UTF-8; qkv data clean drops these pairs");
  if (count_of(text, "tab") > 0)
    advice.push_back(names + ": training refuses lines without exactly one tab; qkv data clean drops them");
  if (!is_dev && text.pairs - text.kept > 0)
    advice.push_back(
        fmt::format("{}: qkv data clean keeps {} of {}", names, text.kept, counted(text.pairs, "pair", "pairs")));
  if (!is_dev && count_of(text, "overlap") > 0)
    advice.push_back(fmt::format("{}: {} also in the dev text, which makes dev scores too good", names,
                                 counted(count_of(text, "overlap"), "source is", "sources are")));
  if (share(count_of(text, "swapped") + count_of(text, "language"), text) > 0.05)
    advice.push_back(names + ": many pairs are not in the languages of the others; look at some of them");
}

ordered_json text_json(const PairReport& text) {
  if (text.files.empty()) return {};
  ordered_json defects = ordered_json::array();
  for (const Defect& d : text.defects)
    defects.push_back({{"name", d.name}, {"meaning", d.meaning}, {"pairs", d.pairs}, {"first_line", d.first_line}});
  return {{"files", text.files},
          {"pairs", text.pairs},
          {"kept", text.kept},
          {"defects", defects},
          {"several_targets", text.several},
          {"changed_spaces", text.spaces},
          {"mean_words", {text.source_words, text.target_words}},
          {"mean_characters", {text.source_characters, text.target_characters}},
          {"swapped", text.swapped}};
}

}  // namespace

std::vector<std::string> advice_for(const CorpusReport& report) {
  std::vector<std::string> advice;
  advise(report.train, false, advice);
  advise(report.dev, true, advice);
  return advice;
}

std::string to_json(const CorpusReport& report) {
  const ordered_json json = {
      {"train", text_json(report.train)}, {"dev", text_json(report.dev)}, {"advice", advice_for(report)}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace qkv

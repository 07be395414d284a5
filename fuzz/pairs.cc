// Parallel text that is checked.
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/json.h"
#include "fuzz/import.h"
#include "program/corpus/corpus.h"

namespace {

// Every pair is counted once, and the report is JSON.
void check_report(const qkv::CorpusReport& report) {
  const auto add = [](int64_t sum, const qkv::Defect& defect) { return sum + defect.pairs; };
  for (const qkv::PairReport& text : {report.train, report.dev})
    qkv::fuzz::require(std::accumulate(text.defects.begin(), text.defects.end(), text.kept, add) == text.pairs,
                       "every pair is counted once");
  qkv::advice_for(report);
  qkv::parse_json(qkv::to_json(report), "report");
}

}  // namespace

// As one file, as both sides of a text, as the source of a fixed target, and as a text and its dev text.
void qkv::fuzz::fuzz_pairs(std::string_view bytes) {
  static const SourceDirectory fixed("unused", {{"target", "eins\nzwei\n"}});
  const MemoryFile file(bytes);
  const std::string &path = file.path(), target = fixed.path() + "/target";
  attempt([&] { check_report(check_corpus({path})); });
  attempt([&] { check_report(check_corpus({path, target})); });
  attempt([&] { check_report(check_corpus({path, path})); });
  attempt([&] { check_report(check_corpus({path, target, path})); });
  attempt([&] { check_report(check_corpus({path}, {path})); });
}

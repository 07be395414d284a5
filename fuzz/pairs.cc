// Parallel text that is checked.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/json.h"
#include "fuzz/reader.h"
#include "qkv/corpus.h"
#include "tests/support/temp_dir.h"

namespace {

// Every pair is counted once, and the report is JSON.
void check(const qkv::CorpusReport& report) {
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
  const MemoryFile file(bytes);
  const std::string& path = file.path();
  static const testing::TempDir directory;
  const std::string target = directory / "target";
  if (!std::filesystem::exists(target)) testing::spill(target, "eins\nzwei\n");
  attempt([&] { check(check_corpus({path})); });
  attempt([&] { check(check_corpus({path, target})); });
  attempt([&] { check(check_corpus({path, path})); });
  attempt([&] { check(check_corpus({path, target, path})); });
  attempt([&] { check(check_corpus({path}, {path})); });
}

// Checks and cleans parallel text: one pass over the text for its statistics, and one that tests each pair.
#include "program/corpus/corpus.h"

#include <filesystem>
#include <memory>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "program/corpus/pair_filter.h"

namespace qkv {
namespace {

using Files = std::vector<std::string>;

TextStatistics statistics_of(const Files& files) {
  TextStatistics statistics;
  PairReader reader(files);
  for (RawPair pair; reader.next(pair);) {
    clean_spaces(pair.source), clean_spaces(pair.target);
    statistics.add(pair);
  }
  return statistics;
}

// Sums become means.
void finish(PairReport& report) {
  if (report.kept == 0) return;
  for (double* sum : {&report.source_words, &report.target_words, &report.source_characters, &report.target_characters})
    *sum /= static_cast<double>(report.kept);
}

// Returns the sources of a dev text, and fills in its report.
HashSet examine_dev(const Files& files, const PairFilters& filters, const TextStatistics& statistics,
                    PairReport& report) {
  HashSet sources;
  if (files.empty()) return sources;
  report.files = files;
  const HashSet none;
  PairFilter filter(filters, statistics, none, report);
  PairReader reader(files);
  for (RawPair pair; reader.next(pair);) {
    filter.take(pair);
    sources.insert(sentence_hash(pair.source));
  }
  report.swapped = 2 * filter.swapped() > report.pairs;
  finish(report);
  return sources;
}

// Tests all pairs, and passes those that are kept to `keep`.
template <class Keep>
CorpusReport examine(const Files& train, const Files& dev, const PairFilters& filters, Keep&& keep) {
  CorpusReport report;
  report.train.files = train;
  const TextStatistics statistics = statistics_of(train);
  const HashSet excluded = examine_dev(dev, filters, statistics, report.dev);
  PairFilter filter(filters, statistics, excluded, report.train);
  PairReader reader(train);
  for (RawPair pair; reader.next(pair);)
    if (filter.take(pair)) keep(pair);
  finish(report.train);
  return report;
}

void check_outputs(const Files& train, const Files& dev, const Files& out) {
  if (out.size() != train.size())
    fail("out: must be as many files as the training text has, {} (is {})", train.size(), out.size());
  if (out.size() == 2 && out[0] == out[1]) fail("out: {} is given twice; expected two files", out[0]);
  for (const Files& inputs : {train, dev})
    for (const std::string& input : inputs)
      for (const std::string& output : out) {
        std::error_code error;
        if (std::filesystem::equivalent(input, output, error)) fail("{}: is an input; choose another output", output);
      }
}

}  // namespace

CorpusReport check_corpus(const Files& train, const Files& dev, const PairFilters& filters) {
  return examine(train, dev, filters, [](const RawPair&) {});
}

CorpusReport clean_corpus(const Files& train, const Files& out, const Files& dev, const PairFilters& filters) {
  check_outputs(train, dev, out);
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (const std::string& path : out) files.push_back(std::make_unique<AtomicFile>(path));
  std::string buffers[2];
  constexpr size_t kBuffer = 1 << 16;
  const auto write = [&](size_t file, bool all) {
    if (!all && buffers[file].size() < kBuffer) return;
    files[file]->write(buffers[file]);
    buffers[file].clear();
  };
  const CorpusReport report = examine(train, dev, filters, [&](const RawPair& pair) {
    if (files.size() == 1) {
      buffers[0] += pair.source + '\t' + pair.target + '\n';
    } else {
      buffers[0] += pair.source + '\n';
      buffers[1] += pair.target + '\n';
    }
    for (size_t file = 0; file < files.size(); file++) write(file, false);
  });
  for (size_t file = 0; file < files.size(); file++) write(file, true);
  for (const auto& file : files) file->commit();
  return report;
}

}  // namespace qkv

#include "text/parallel_corpus.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/fail.h"
#include "core/hash.h"
#include "core/random.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

void append(std::vector<std::string>& to, std::vector<std::string> lines) {
  to.insert(to.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
}

// Each file on a thread of its own.
std::vector<LineFile> scan(const std::vector<std::string>& paths, int64_t chunk_pairs) {
  if (paths.empty() || paths.size() > 2)
    fail("parallel text: {} files, expected two (source and target) or one (source TAB target)", paths.size());
  LineFile::Check one_tab;
  if (paths.size() == 1)
    one_tab = [&](int64_t number, std::string_view line) {
      const auto tabs = std::count(line.begin(), line.end(), '\t');
      if (tabs != 1) fail("{}:{}: {} tabs, expected one (source TAB target)", paths[0], number, tabs);
    };
  std::vector<std::optional<LineFile>> scanned(paths.size());
  parallel_for_throwing(std::ssize(paths),
                        [&](int64_t i) { scanned[to_size(i)].emplace(paths[to_size(i)], chunk_pairs, one_tab); });
  std::vector<LineFile> files;
  for (std::optional<LineFile>& file : scanned) files.push_back(std::move(*file));
  return files;
}

}  // namespace

ParallelCorpus::ParallelCorpus(const std::vector<std::string>& files, bool lower_case, int64_t chunk_pairs)
    : files_(scan(files, chunk_pairs)), lower_case_(lower_case), chunk_pairs_(chunk_pairs) {
  const LineFile &shorter = files_.front().lines() < files_.back().lines() ? files_.front() : files_.back(),
                 &longer = &shorter == &files_.back() ? files_.front() : files_.back();
  if (shorter.lines() != longer.lines())
    fail("{}:{}: the file ends here, expected {} lines as in {}", shorter.path(), shorter.lines() + 1, longer.lines(),
         longer.path());
}

std::string ParallelCorpus::fingerprint() const {
  uint64_t hash = files_.size();
  for (const LineFile& file : files_) hash = hash_mix(hash, file.hash());
  return fmt::format("{:016x}", hash);
}

ParallelText ParallelCorpus::read(int64_t chunk) const {
  ParallelText text{files_.front().read(chunk), {}};
  if (files_.size() == 2) {
    text.target = files_.back().read(chunk);
  } else {
    for (std::string& line : text.source) {
      const size_t tab = line.find('\t');
      text.target.push_back(line.substr(tab + 1));
      line.resize(tab);
    }
  }
  if (lower_case_)
    for (auto* side : {&text.source, &text.target})
      for (std::string& line : *side) line = lowercase(line);
  return text;
}

void ParallelCorpus::will_need(int64_t chunk) const {
  for (const LineFile& file : files_) file.will_need(chunk);
}

std::vector<std::string> ParallelCorpus::read_source(int64_t chunk) const {
  std::vector<std::string> lines = files_.front().read(chunk);
  if (files_.size() == 1)
    for (std::string& line : lines) line.resize(line.find('\t'));
  return lines;
}

std::vector<int64_t> ParallelCorpus::sampled_chunks(int64_t most) const {
  const int64_t parts = size() <= most ? chunks() : std::max<int64_t>(1, most / chunk_pairs_);
  Random random(0, Stream::chunks);
  std::vector<int64_t> sampled;
  for (int64_t i = 0; i < parts; i++) {
    const int64_t begin = i * chunks() / parts, end = (i + 1) * chunks() / parts;
    sampled.push_back(begin + static_cast<int64_t>(random.below(static_cast<uint64_t>(end - begin))));
  }
  return sampled;
}

ParallelText ParallelCorpus::sample(int64_t most) const {
  ParallelText sample;
  for (const int64_t chunk : sampled_chunks(most)) {
    ParallelText text = read(chunk);
    append(sample.source, std::move(text.source));
    append(sample.target, std::move(text.target));
  }
  return sample;
}

ParallelText read_parallel(const std::vector<std::string>& files, bool lower_case) {
  const ParallelCorpus corpus(files, lower_case);
  return corpus.sample(corpus.size());
}

}  // namespace qkv

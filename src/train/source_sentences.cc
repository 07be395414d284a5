#include "train/source_sentences.h"

#include <algorithm>

#include "text/abbreviations.h"
#include "text/sentences.h"

namespace qkv {

SourceSentences find_sentences(const ParallelCorpus& text, int64_t most, const std::vector<std::string>& known) {
  const std::vector<int64_t> chunks = text.sampled_chunks(most);
  AbbreviationCounter counter;
  for (const int64_t chunk : chunks)
    for (const std::string& line : text.read_source(chunk)) counter.add(line);

  SourceSentences found{counter.abbreviations()};
  found.abbreviations.insert(found.abbreviations.end(), known.begin(), known.end());
  std::ranges::sort(found.abbreviations);
  const auto repeated = std::ranges::unique(found.abbreviations);
  found.abbreviations.erase(repeated.begin(), repeated.end());

  const SentenceSplitter splitter(found.abbreviations);
  for (const int64_t chunk : chunks)
    for (const std::string& line : text.read_source(chunk)) {
      const size_t sentences = splitter.split(line).size();
      found.lines += sentences > 0;
      found.several += sentences > 1;
    }
  return found;
}

}  // namespace qkv

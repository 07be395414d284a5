// A paragraph that is split into sentences, with abbreviations that are learned from it and read from a file.
#include "text/sentences.h"

#include "fuzz/reader.h"
#include "qkv/text.h"
#include "text/abbreviations.h"
#include "text/unicode.h"

namespace {

using namespace qkv;
using fuzz::require;

bool is_space(std::string_view text) { return split_words(text).empty(); }

void check_split(const SentenceSplitter& splitter, std::string_view text) {
  size_t done = 0;
  for (const std::string_view sentence : splitter.split(text)) {
    const auto begin = static_cast<size_t>(sentence.data() - text.data());
    require(begin >= done && begin + sentence.size() <= text.size(), "sentences are in order");
    require(!is_space(sentence) && is_space(text.substr(done, begin - done)), "only white space is in no sentence");
    require(splitter.split(sentence) == std::vector<std::string_view>{sentence}, "a sentence has one sentence");
    done = begin + sentence.size();
  }
  require(is_space(text.substr(done)), "only white space is in no sentence");
}

}  // namespace

void qkv::fuzz::fuzz_sentences(std::string_view bytes) {
  AbbreviationCounter counter;
  for (int i = 0; i < 4; i++) counter.add(bytes);
  check_split(SentenceSplitter(), bytes);
  check_split(SentenceSplitter(counter.abbreviations()), bytes);
  attempt([&] { check_split(SentenceSplitter(read_abbreviations(MemoryFile(bytes).path())), bytes); });
}

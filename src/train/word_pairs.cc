#include "train/word_pairs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/sorted_unique.h"
#include "core/to_size.h"
#include "text/sentence_characters.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr int64_t kSampledPairs = 50'000;
constexpr size_t kMostWords = 64;  // of a sentence that are counted
constexpr int64_t kFewestLetters = 3, kFewestSentences = 3;
constexpr int64_t kFrequent = 20;  // a word in more than one of this number of sentences is left out
constexpr double kLeastDice = 0.3;

using sentence::Character;
using sentence::character_at;

bool is_of_word(int32_t code) {
  return (sentence::is_alphanumeric(code) && sentence::has_spaced_words(code)) || sentence::is_combining(code);
}

std::string_view text_of(std::string_view text, const ByteRange& word) {
  return text.substr(word.begin, word.end - word.begin);
}

// The words of one side, and in which sentences they are.
class Side {
 public:
  void add(std::string_view text) {
    std::vector<int32_t> ids;
    for (const ByteRange& word : words_of(text)) {
      const std::string_view written = text_of(text, word);
      if (ids.size() == kMostWords || count_characters(written) < kFewestLetters) continue;
      const auto [known, is_new] = id_of_.emplace(lowercase(written), static_cast<int32_t>(words_.size()));
      if (is_new) words_.push_back(known->first), counts_.push_back(0);
      ids.push_back(known->second);
    }
    for (const int32_t id : sentences_.emplace_back(sorted_unique(std::move(ids)))) counts_[to_size(id)]++;
  }

  // Drops words that are too rare or too frequent.
  void drop() {
    const int64_t most = std::max(kFewestSentences, std::ssize(sentences_) / kFrequent);
    for (std::vector<int32_t>& sentence : sentences_)
      std::erase_if(sentence, [&](int32_t id) { return count(id) < kFewestSentences || count(id) > most; });
  }

  const std::vector<std::vector<int32_t>>& sentences() const { return sentences_; }
  const std::string& word(int32_t id) const { return words_[to_size(id)]; }
  int64_t count(int32_t id) const { return counts_[to_size(id)]; }
  size_t size() const { return words_.size(); }

 private:
  std::unordered_map<std::string, int32_t> id_of_;
  std::vector<std::string> words_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<int32_t>> sentences_;
};

// Calls visit(source word, target word, number of pairs that have both). Counts the words of one source word at a time,
// so that memory grows with the words rather than with their pairs.
template <class Visit>
void for_each_partner(const Side& source, const Side& target, Visit&& visit) {
  std::vector<std::vector<int32_t>> sentences_of(source.size());
  for (size_t i = 0; i < source.sentences().size(); i++)
    for (const int32_t s : source.sentences()[i]) sentences_of[to_size(s)].push_back(static_cast<int32_t>(i));
  std::vector<int64_t> together(target.size());
  std::vector<int32_t> partners;
  for (size_t s = 0; s < sentences_of.size(); s++) {
    for (const int32_t i : sentences_of[s])
      for (const int32_t t : target.sentences()[to_size(i)])
        if (together[to_size(t)]++ == 0) partners.push_back(t);
    for (const int32_t t : partners) visit(static_cast<int32_t>(s), t, std::exchange(together[to_size(t)], 0));
    partners.clear();
  }
}

struct BestPartner {
  int32_t id = -1;
  double dice = 0;

  void offer(int32_t other, double value) {
    if (value > dice || (value == dice && other < id)) *this = {other, value};
  }
};

// Returns the places of words that are the only one of their kind, in lower case.
std::map<std::string, ByteRange> single_words(std::string_view text) {
  std::map<std::string, ByteRange> singles;
  std::map<std::string, int> counts;
  for (const ByteRange& word : words_of(text)) {
    const std::string lower = lowercase(text_of(text, word));
    singles[lower] = word;
    counts[lower]++;
  }
  for (const auto& [word, count] : counts)
    if (count > 1) singles.erase(word);
  return singles;
}

// Whether a word is a name or a number.
bool is_name(std::string_view word) {
  if (count_characters(word) < 2) return false;
  for (Character c = character_at(word, 0); c.begin < word.size(); c = character_at(word, c.end))
    if (sentence::is_upper(c.code) || sentence::is_digit(c.code)) return true;
  return false;
}

}  // namespace

std::vector<ByteRange> words_of(std::string_view text) {
  std::vector<ByteRange> words;
  bool is_inside = false;
  for (Character c = character_at(text, 0); c.begin < text.size(); c = character_at(text, c.end)) {
    const bool belongs = is_of_word(c.code);
    if (belongs && is_inside) words.back().end = c.end;
    if (belongs && !is_inside) words.push_back({c.begin, c.end});
    is_inside = belongs;
  }
  return words;
}

WordPairs::WordPairs(const ParallelCorpus& text) {
  Side source, target;
  for (const int64_t chunk : text.sampled_chunks(kSampledPairs)) {
    const ParallelText pairs = text.read(chunk);
    for (const std::string& line : pairs.source) source.add(line);
    for (const std::string& line : pairs.target) target.add(line);
  }
  source.drop(), target.drop();
  std::vector<BestPartner> of_source(source.size()), of_target(target.size());
  for_each_partner(source, target, [&](int32_t s, int32_t t, int64_t count) {
    const double dice = 2.0 * static_cast<double>(count) / static_cast<double>(source.count(s) + target.count(t));
    if (count < kFewestSentences || dice < kLeastDice) return;
    of_source[to_size(s)].offer(t, dice);
    of_target[to_size(t)].offer(s, dice);
  });
  for (size_t s = 0; s < of_source.size(); s++)
    if (const int32_t t = of_source[s].id; t >= 0 && of_target[to_size(t)].id == static_cast<int32_t>(s))
      target_of_.emplace(source.word(static_cast<int32_t>(s)), target.word(t));
}

std::string_view WordPairs::target_of(const std::string& source) const {
  const auto known = target_of_.find(source);
  return known == target_of_.end() ? std::string_view() : std::string_view(known->second);
}

std::vector<WordPair> WordPairs::find(std::string_view source, std::string_view target) const {
  const std::map<std::string, ByteRange> sources = single_words(source), targets = single_words(target);
  std::vector<WordPair> found;
  for (const auto& [word, place] : sources) {
    const bool is_same = is_name(text_of(source, place));
    auto other = is_same ? targets.find(word) : targets.end();
    if (other != targets.end() && text_of(target, other->second) != text_of(source, place)) other = targets.end();
    if (other == targets.end()) other = targets.find(std::string(target_of(word)));
    if (other != targets.end()) found.push_back({place, other->second});
  }
  std::ranges::sort(found, {}, [](const WordPair& pair) { return pair.source.begin; });
  std::erase_if(found, [all = found](const WordPair& pair) {
    return std::ranges::count_if(all, [&](const WordPair& p) { return p.target.begin == pair.target.begin; }) > 1;
  });
  return found;
}

}  // namespace qkv

#include "text/abbreviations.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "text/lines.h"
#include "text/sentence_characters.h"
#include "text/sentence_words.h"
#include "text/unicode.h"

namespace qkv {
namespace sentence {
namespace {

constexpr size_t kMostWords = size_t{1} << 18;  // in memory
constexpr size_t kCountedBytes = 32;            // of a word that is counted
constexpr size_t kLineBytes = 64;               // of a line in a file
constexpr size_t kFileBytes = size_t{1} << 24;  // of a file: more than all words that are counted have
constexpr int64_t kFewest = 3;                  // occurrences with a full stop

// Returns a word without quotes, brackets and commas around it.
std::string_view trimmed(std::string_view word) {
  const auto is_inner = [](int32_t c) { return c < 0 || is_alphanumeric(c) || is_combining(c) || c == '.'; };
  Character c = character_at(word, 0);
  while (!word.empty() && !is_inner(c.code)) {
    word.remove_prefix(c.end);
    c = character_at(word, 0);
  }
  c = character_before(word, word.size());
  while (!word.empty() && !is_inner(c.code)) {
    word.remove_suffix(word.size() - c.begin);
    c = character_before(word, word.size());
  }
  return word;
}

// Whether a word may be an abbreviation: it begins with a letter and has only letters, hyphens and full stops.
bool is_countable(std::string_view word) {
  if (word.empty() || word.size() > kCountedBytes || !is_letter(character_at(word, 0).code)) return false;
  for (Character c = character_at(word, 0); c.begin < word.size(); c = character_at(word, c.end))
    if (!is_letter(c.code) && !is_combining(c.code) && c.code != '.' && c.code != '-') return false;
  return !word.ends_with('.');
}

// Whether a word is likely to be the first of a sentence: "The".
bool begins_sentence(std::string_view word) {
  return is_upper(character_at(word, 0).code) && word.size() <= kCountedBytes &&
         has_role(lowercase(word), WordRole::starter);
}

}  // namespace
}  // namespace sentence

void AbbreviationCounter::add(std::string_view line) {
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    std::string_view previous;
    for (const std::string_view word : split_words(line.substr(begin, end - begin))) {
      const std::string_view next = sentence::trimmed(word);
      if (!previous.ends_with('.') || !sentence::begins_sentence(next)) count(previous);
      previous = next;
    }
    begin = end + 1;
  }
}

void AbbreviationCounter::count(std::string_view word) {
  if (word.empty()) return;
  const bool has_stop = word.ends_with('.');
  all_++;
  all_with_stop_ += has_stop;
  if (has_stop) word.remove_suffix(1);
  if (!sentence::is_countable(word)) return;
  Counts& counts = words_[lowercase(word)];
  (has_stop ? counts.with_stop : counts.without_stop)++;
  if (words_.size() > sentence::kMostWords) forget_rare();
}

void AbbreviationCounter::forget_rare() {
  for (int64_t least = 2; words_.size() > sentence::kMostWords / 2; least *= 2)
    std::erase_if(words_,
                  [&](const auto& entry) { return entry.second.with_stop + entry.second.without_stop < least; });
}

// Returns Dunning's log-likelihood ratio of "the full stop belongs to the word" (its probability is 0.99) against "it
// is independent of the word", times Punkt's factors of length, inner full stops, and occurrences without a full stop.
double AbbreviationCounter::score(const std::string& word, const Counts& counts) const {
  constexpr double kProbability = 0.99;
  const double independent = static_cast<double>(all_with_stop_) / static_cast<double>(all_);
  const auto with = static_cast<double>(counts.with_stop), without = static_cast<double>(counts.without_stop);
  const auto log_likelihood = [&](double p) { return with * std::log(p) + without * std::log1p(-p); };
  const double ratio = 2 * (log_likelihood(kProbability) - log_likelihood(std::min(independent, kProbability)));
  const auto stops = static_cast<double>(std::ranges::count(word, '.'));
  const auto length = static_cast<double>(sentence::count_letters(word));
  return ratio * std::exp(-length) * (stops + 1) * std::pow(length, -without);
}

std::vector<std::string> AbbreviationCounter::abbreviations() const {
  constexpr double kThreshold = 0.3;  // of Punkt
  std::vector<std::string> found;
  for (const auto& [word, counts] : words_)
    if (counts.with_stop >= sentence::kFewest && score(word, counts) >= kThreshold) found.push_back(word);
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> read_abbreviations(const std::string& path) {
  std::vector<std::string> abbreviations;
  int64_t number = 0;
  for (const std::string& line : read_option_lines(path, sentence::kFileBytes)) {
    number++;
    const std::vector<std::string_view> words = split_words(line);
    if (words.empty()) continue;
    if (words.size() > 1) fail("{}: line {} has {} words, expected one abbreviation", path, number, words.size());
    if (words[0].size() > sentence::kLineBytes)
      fail("{}: line {} has {} bytes, expected an abbreviation of at most {}", path, number, words[0].size(),
           sentence::kLineBytes);
    abbreviations.emplace_back(words[0].substr(0, words[0].size() - words[0].ends_with('.')));
  }
  return abbreviations;
}

}  // namespace qkv

#include "train/pair_rewriter.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "core/random.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/terms/inline_terms.h"
#include "text/sentence_characters.h"
#include "text/sentence_context.h"

namespace qkv {
namespace {

using Change = ChangedPart::Change;

constexpr double kSharedParts = 0.75;  // share of the pairs with them that have stand-ins for them
constexpr double kAdded = 0.4;         // share of all pairs that are changed at words
constexpr double kSecond = 0.4;        // share of these with a second change, and of them with a third
constexpr double kAtEnds = 0.15;       // share of the changes that are at the start or end of the sentence
constexpr double kReplaced = 0.4;      // share of the others that replace the word
constexpr double kPhrases = 0.5;       // share of the changes at two words, where there are two
constexpr size_t kMostAdded = 3;

struct Edit {
  size_t begin = 0, end = 0;
  std::string text;
};

std::string_view text_of_part(std::string_view text, size_t begin, size_t end) {
  return text.substr(begin, end - begin);
}

void remove_all(std::string& text, std::span<const std::string> characters) {
  for (const std::string& character : characters)
    for (size_t at = text.find(character); at != text.npos; at = text.find(character, at))
      text.erase(at, character.size());
}

// Returns the parts that stand equally often on both sides, in the order of the source.
std::vector<ChangedPart> shared_parts(std::string_view source, std::span<const ProtectedPart> sources,
                                      std::string_view target, std::span<const ProtectedPart> targets) {
  using Places = std::map<std::string_view, std::vector<ByteRange>>;
  const auto places_of = [](std::string_view text, std::span<const ProtectedPart> parts) {
    Places places;
    for (const auto& [begin, end] : parts) places[text_of_part(text, begin, end)].push_back({begin, end});
    return places;
  };
  const Places of_source = places_of(source, sources), of_target = places_of(target, targets);
  std::vector<ChangedPart> shared;
  for (const auto& [part, places] : of_source) {
    const auto found = of_target.find(part);
    if (found == of_target.end() || found->second.size() != places.size()) continue;
    for (size_t i = 0; i < places.size(); i++) shared.push_back({places[i], found->second[i]});
  }
  std::ranges::sort(shared, {}, [](const ChangedPart& part) { return part.source.begin; });
  return shared;
}

bool overlaps_any(const ByteRange& word, std::span<const ProtectedPart> parts) {
  return std::ranges::any_of(parts, [&](const ProtectedPart& p) { return p.begin < word.end && word.begin < p.end; });
}

// Returns the place before the marks that end a sentence, behind its last protected part and its last bracket, which
// may belong to a name such as items[0].
size_t end_of_words(std::string_view text, std::span<const ProtectedPart> parts) {
  const size_t least = parts.empty() ? 0 : parts.back().end;
  for (size_t end = text.size(); end > least;) {
    const sentence::Character last = sentence::character_before(text, end);
    const bool is_mark = sentence::is_blank(last.code) || sentence::stop_of(last.code) != sentence::Stop::none ||
                         sentence::is_closing_quote(last.code);
    if (!is_mark) return end;
    end = last.begin;
  }
  return least;
}

// The two places of changes at the end of a pair.
struct EndsOfWords {
  size_t source = 0, target = 0;
};

// The changes of one pair at words.
class AddedChanges {
 public:
  AddedChanges(std::string_view source, std::string_view target, const EndsOfWords& ends, std::vector<WordPair> words,
               Random& random)
      : source_(source), target_(target), ends_(ends), left_(std::move(words)), random_(random) {
    random_.shuffle(left_);
  }

  // Appends changes by stand-ins, by translations of terms, or by a random one of both.
  void append(bool has_stand_ins, bool has_terms, std::vector<ChangedPart>& to) {
    if (random_.uniform() > kAdded) return;
    size_t count = 1;
    while (count < kMostAdded && random_.uniform() < kSecond) count++;
    for (size_t i = 0; i < count; i++) {
      const bool is_term = has_terms && (!has_stand_ins || random_.uniform() < 0.5);
      if (!is_term && !has_end_ && (left_.empty() || random_.uniform() < kAtEnds)) {
        to.push_back(at_end());
      } else if (!left_.empty()) {
        to.push_back(at_word(is_term));
      }
    }
  }

 private:
  ChangedPart at_end() {
    has_end_ = true;
    if (random_.uniform() < 0.5) return {{0, 0}, {0, 0}, Change::before};
    return {{ends_.source, ends_.source}, {ends_.target, ends_.target}, Change::after};
  }

  ChangedPart at_word(bool is_term) {
    WordPair words = left_.back();
    left_.pop_back();
    const auto next = std::ranges::find_if(left_, [&](const WordPair& p) {
      return p.source.begin == words.source.end + 1 && p.target.begin == words.target.end + 1;
    });
    const bool has_next = next != left_.end() && source_[words.source.end] == ' ' && target_[words.target.end] == ' ';
    if (has_next && random_.uniform() < kPhrases) {
      words.source.end = next->source.end, words.target.end = next->target.end;
      left_.erase(next);
    }
    if (is_term) return {words.source, words.target, Change::inline_term};
    if (random_.uniform() < kReplaced) return {words.source, words.target, Change::replace};
    return {words.source, words.target, random_.uniform() < 0.5 ? Change::before : Change::after};
  }

  std::string_view source_, target_;
  const EndsOfWords ends_;
  std::vector<WordPair> left_;  // that no change is at
  Random& random_;
  bool has_end_ = false;  // a change at the start or end
};

// Returns the edit of one side by a stand-in.
Edit stand_in_edit(const ByteRange& place, Change change, const std::string& stand_in) {
  switch (change) {
    case Change::before:
      return {place.begin, place.begin, stand_in + " "};
    case Change::after:
      return {place.end, place.end, " " + stand_in};
    default:
      return {place.begin, place.end, stand_in};
  }
}

// Makes edits, which must not overlap.
void edit(std::string& text, std::vector<Edit> edits) {
  std::ranges::stable_sort(edits, {}, [](const Edit& e) { return std::pair(e.begin, e.end); });
  for (size_t i = 1; i < edits.size(); i++)
    if (edits[i].begin < edits[i - 1].end) fail("edits of a sentence overlap at byte {}", edits[i].begin + 1);
  for (size_t i = edits.size(); i-- > 0;) text.replace(edits[i].begin, edits[i].end - edits[i].begin, edits[i].text);
}

std::vector<std::string> texts_of(const std::vector<StandIn>& stand_ins) {
  std::vector<std::string> texts;
  for (const StandIn& s : stand_ins) texts.push_back(s.text);
  return texts;
}

std::vector<std::string> texts_of(const std::optional<TermMarks>& marks) {
  if (!marks) return {};
  return {marks->before, marks->after};
}

}  // namespace

PairRewriter::PairRewriter(const TranslationTokens& tokens, WordPairs words, uint64_t seed)
    : stand_ins_(texts_of(tokens.stand_ins)),
      term_marks_(texts_of(tokens.term_marks)),
      reserved_(tokens.reserved),
      words_(std::move(words)),
      seed_(seed),
      finder_(true, "") {}

void PairRewriter::rewrite(std::string& source, std::string& target, int64_t number) const {
  Random random(seed_, Stream::pairs, static_cast<uint64_t>(number));
  remove_all(source, reserved_);
  remove_all(target, reserved_);
  const std::vector<ProtectedPart> sources = finder_.find(source), targets = finder_.find(target);
  std::vector<ChangedPart> changes;
  if (!stand_ins_.empty() && random.uniform() < kSharedParts) changes = shared_parts(source, sources, target, targets);
  if (changes.size() > stand_ins_.size()) changes.clear();

  std::vector<WordPair> words = words_.find(source, target);
  std::erase_if(words, [&](const WordPair& pair) {
    return overlaps_any(pair.source, sources) || overlaps_any(pair.target, targets);
  });
  const bool has_room = changes.size() + kMostAdded <= stand_ins_.size(), has_terms = !term_marks_.empty();
  if (!source.empty() && !target.empty() && (has_room || has_terms))
    AddedChanges(source, target, {end_of_words(source, sources), end_of_words(target, targets)}, std::move(words),
                 random)
        .append(has_room, has_terms, changes);
  make_changes(source, target, changes, random);
}

void PairRewriter::make_changes(std::string& source, std::string& target, std::vector<ChangedPart>& changes,
                                Random& random) const {
  std::ranges::stable_sort(changes, {}, [](const ChangedPart& part) { return part.source.begin; });
  size_t next = stand_ins_.empty() ? 0 : random.below(stand_ins_.size());
  std::vector<Edit> source_edits, target_edits;
  for (const ChangedPart& part : changes) {
    if (part.change == Change::inline_term) {
      const std::string_view translation = text_of_part(target, part.target.begin, part.target.end);
      source_edits.push_back(
          {part.source.end, part.source.end, inline_term(translation, term_marks_[0], term_marks_[1])});
      continue;
    }
    const std::string& stand_in = stand_ins_[next++ % stand_ins_.size()];
    source_edits.push_back(stand_in_edit(part.source, part.change, stand_in));
    target_edits.push_back(stand_in_edit(part.target, part.change, stand_in));
  }
  edit(source, std::move(source_edits));
  edit(target, std::move(target_edits));
}

void PairRewriter::rewrite(ParallelText& text, int64_t first) const {
  parallel_for_throwing(text.size(),
                        [&](int64_t i) { rewrite(text.source[to_size(i)], text.target[to_size(i)], first + i); });
}

}  // namespace qkv

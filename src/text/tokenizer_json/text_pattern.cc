#include "text/tokenizer_json/text_pattern.h"

#include <unicode/utf8.h>

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/tokenizer_json/json_object.h"

namespace qkv {
namespace {

constexpr size_t kMaxGrowth = 64;
constexpr uint64_t kWorkPerByte = 64;  // steps that a regular expression may take for each byte and instruction

struct Cut {
  size_t begin, end;
  bool is_match;
};

// The text, cut at the ends of matches.
std::vector<Cut> cuts_of(std::string_view text, const TextPattern& pattern, bool invert) {
  std::vector<Cut> cuts;
  size_t done = 0;
  pattern.find_all(text, [&](size_t begin, size_t end) {
    if (done < begin) cuts.push_back({done, begin, invert});
    cuts.push_back({begin, end, !invert});
    done = end;
  });
  if (done < text.size()) cuts.push_back({done, text.size(), invert});
  return cuts;
}

// Joins each match to the part before it, if that is none.
void merge_with_previous(std::vector<Cut>& cuts) {
  std::vector<Cut> merged;
  bool was_match = false;
  for (const Cut& cut : cuts) {
    if (cut.is_match && !was_match && !merged.empty())
      merged.back().end = cut.end;
    else
      merged.push_back(cut);
    was_match = cut.is_match;
  }
  cuts = std::move(merged);
}

void merge_with_next(std::vector<Cut>& cuts) {
  std::vector<Cut> merged;  // from the end
  bool was_match = false;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    if (cut->is_match && !was_match && !merged.empty())
      merged.back().begin = cut->begin;
    else
      merged.push_back(*cut);
    was_match = cut->is_match;
  }
  cuts.assign(merged.rbegin(), merged.rend());
}

void merge_contiguous(std::vector<Cut>& cuts) {
  std::vector<Cut> merged;
  bool was_match = false;
  for (const Cut& cut : cuts) {
    if (cut.is_match == was_match && !merged.empty())
      merged.back().end = cut.end;
    else
      merged.push_back(cut);
    was_match = cut.is_match;
  }
  cuts = std::move(merged);
}

}  // namespace

TextPattern TextPattern::read(const nlohmann::json& value, const std::string& where) {
  const JsonObject object(value, where, {"String", "Regex"});
  if (object.find("String")) return TextPattern(object.text("String"));
  const std::string expression = object.text("Regex");
  if (const auto known = pattern_of(expression)) return TextPattern(*known);
  return TextPattern(Regex(expression, object.at("Regex")));
}

void TextPattern::find_all(std::string_view text, const std::function<void(size_t, size_t)>& match) const {
  if (const auto* string = std::get_if<std::string>(&what_)) {
    if (string->empty()) return;
    for (size_t at = 0; (at = text.find(*string, at)) != text.npos; at += string->size())
      match(at, at + string->size());
  } else if (const auto* is = std::get_if<Is>(&what_)) {
    const auto length = static_cast<int64_t>(text.size());
    for (int64_t i = 0; i < length;) {
      const int64_t begin = i;
      UChar32 c;
      U8_NEXT_OR_FFFD(text.data(), i, length, c);
      if ((*is)(c)) match(to_size(begin), to_size(i));
    }
  } else if (const auto* words = std::get_if<WordPattern>(&what_)) {
    std::vector<std::string_view> found;
    split_words(*words, text, found);
    for (const std::string_view word : found) {
      const auto begin = static_cast<size_t>(word.data() - text.data());
      match(begin, begin + word.size());
    }
  } else {
    const auto& regex = std::get<Regex>(what_);
    uint64_t work = 0;
    const uint64_t most = kWorkPerByte * (text.size() + 1024) * regex.size();
    std::optional<size_t> last;  // the end of the last match, where an empty one is not accepted
    for (size_t place = 0; place <= text.size();) {
      const auto found = regex.find(text, place, work, most);
      if (!found) return;
      const auto [begin, end] = *found;
      if (begin == end && last == end) {
        if (place == text.size()) return;
        U8_FWD_1(text.data(), place, text.size());
        continue;
      }
      match(begin, end);
      last = place = end;
    }
  }
}

void check_growth(size_t before, size_t after) {
  if (after > kMaxGrowth * (before + 1024))
    fail("tokenizer: the normalizer must make a text at most {} times as long (makes {} bytes of {})", kMaxGrowth,
         after, before);
}

std::string TextPattern::replace(std::string_view text, std::string_view by) const {
  std::string result;
  size_t done = 0;
  find_all(text, [&](size_t begin, size_t end) {
    result.append(text, done, begin - done).append(by);
    done = end;
    check_growth(text.size(), result.size());
  });
  return result.append(text, done);
}

std::optional<SplitBehavior> split_behavior(std::string_view name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return {};
}

void split_text(std::string_view text, const TextPattern& pattern, SplitBehavior behavior, bool invert,
                std::vector<std::string_view>& parts) {
  std::vector<Cut> cuts = cuts_of(text, pattern, invert);
  if (behavior == SplitBehavior::merged_with_previous) merge_with_previous(cuts);
  if (behavior == SplitBehavior::merged_with_next) merge_with_next(cuts);
  if (behavior == SplitBehavior::contiguous) merge_contiguous(cuts);
  for (const Cut& cut : cuts)
    if (cut.begin < cut.end && !(cut.is_match && behavior == SplitBehavior::removed))
      parts.push_back(text.substr(cut.begin, cut.end - cut.begin));
}

}  // namespace qkv

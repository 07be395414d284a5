#include "documents/markdown/markdown_run.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace qkv {
namespace {

// Whether a mark of emphasis continues a run of which some characters are text.
bool is_in_partial_run(const SplitText& document, const std::vector<RunItem>& run, size_t i) {
  const auto is_text = [&](size_t item) { return run[item].kind == RunItem::Kind::text; };
  const std::string_view bytes(document.bytes);
  const RunItem& item = run[i];
  const char c = bytes[item.begin];
  if (c != '*' && c != '_') return false;
  if (i + 1 < run.size() && is_text(i + 1) && run[i + 1].begin == item.end && bytes[item.end] == c) return true;
  return i > 0 && is_text(i - 1) && run[i - 1].end == item.begin && bytes[item.begin - 1] == c &&
         (item.begin < 2 || bytes[item.begin - 2] != '\\');
}

// md4c finds emphasis in "**/*.c", as it counts runs next to punctuation in another way than CommonMark. So marks whose
// runs are partly text become text.
void separate_unmatched(const SplitText& document, std::vector<RunItem>& run) {
  std::vector<size_t> open;
  std::unordered_map<const std::string*, size_t> count;  // of open elements of each name
  std::vector<bool> is_matched(run.size());
  for (size_t i = 0; i < run.size(); i++) {
    if (run[i].kind == RunItem::Kind::open) {
      open.push_back(i);
      count[run[i].name]++;
    } else if (run[i].kind == RunItem::Kind::close && count[run[i].name] > 0) {
      for (; run[open.back()].name != run[i].name; open.pop_back()) count[run[open.back()].name]--;
      is_matched[i] = is_matched[open.back()] = true;
      if (is_in_partial_run(document, run, i) || is_in_partial_run(document, run, open.back()))
        run[i].kind = run[open.back()].kind = RunItem::Kind::text;
      count[run[i].name]--;
      open.pop_back();
    }
  }
  for (size_t i = 0; i < run.size(); i++)
    if (!is_matched[i] && (run[i].kind == RunItem::Kind::open || run[i].kind == RunItem::Kind::close))
      run[i].kind = RunItem::Kind::single;
}

// Finds the addresses of a text one after the other, in linear time.
class AddressFinder {
 public:
  explicit AddressFinder(std::string_view text) : text_(text) {}

  // Returns the next address from this byte on, an empty range behind the text if there is none.
  ByteRange next(size_t from) {
    constexpr std::array<std::string_view, 3> kBeginnings = {"http://", "https://", "www."};
    for (size_t i = 0; i < kBeginnings.size(); i++)
      if (places_[i] == 0 || places_[i] < from) places_[i] = std::min(text_.find(kBeginnings[i], from), text_.size());
    const size_t begin = *std::ranges::min_element(places_);
    if (begin == text_.size()) return {begin, begin};
    const size_t end = std::min(text_.find_first_of(" \t\r\n<>\"`|", begin), text_.size());
    return {begin, text_.find_last_not_of("?!.,:;*_~)]}'", end - 1) + 1};
  }

 private:
  const std::string_view text_;
  std::array<size_t, 3> places_ = {};
};

void separate_addresses(const SplitText& document, std::vector<RunItem>& run) {
  std::vector<RunItem> separated;
  for (const RunItem& item : run) {
    if (item.kind != RunItem::Kind::text) {
      separated.push_back(item);
      continue;
    }
    const std::string_view text = document.slice(item.begin, item.end);
    AddressFinder finder(text);
    for (size_t at = 0; at < text.size();) {
      const ByteRange address = finder.next(at);
      if (at < address.begin) separated.push_back({RunItem::Kind::text, item.begin + at, item.begin + address.begin});
      if (address.size() > 0)
        separated.push_back({RunItem::Kind::single, item.begin + address.begin, item.begin + address.end});
      at = address.end;
    }
  }
  run = std::move(separated);
}

}  // namespace

void settle_markdown_run(const SplitText& document, std::vector<RunItem>& run) {
  separate_unmatched(document, run);
  separate_addresses(document, run);
}

}  // namespace qkv

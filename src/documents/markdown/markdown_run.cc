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

bool is_in_mail_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

// Finds the addresses of a text, of pages and of mail ("a@b.c"), one after the other, in linear time.
class AddressFinder {
 public:
  explicit AddressFinder(std::string_view text) : text_(text) {}

  // Returns the first address from this byte on, an empty range behind the text if there is none. Calls have rising
  // places.
  ByteRange next(size_t from) {
    constexpr std::array<std::string_view, 3> kBeginnings = {"http://", "https://", "www."};
    for (size_t i = 0; i < kBeginnings.size(); i++)
      if (is_new_ || places_[i] < from) places_[i] = std::min(text_.find(kBeginnings[i], from), text_.size());
    if (is_new_ || mail_.begin < from) mail_ = next_mail(from);
    is_new_ = false;
    const size_t begin = *std::ranges::min_element(places_);
    if (mail_.begin <= begin) return mail_;
    const size_t end = std::min(text_.find_first_of(" \t\r\n<>\"`|", begin), text_.size());
    return {begin, text_.find_last_not_of("?!.,:;*_~)]}'", end - 1) + 1};
  }

 private:
  ByteRange next_mail(size_t from) const {
    for (size_t at = text_.find('@', from); at != text_.npos; at = text_.find('@', at + 1)) {
      size_t begin = at, end = at + 1;
      while (begin > from && (is_in_mail_name(text_[begin - 1]) || text_[begin - 1] == '+')) begin--;
      while (end < text_.size() && is_in_mail_name(text_[end])) end++;
      while (end > at && std::string_view(".-_@").find(text_[end - 1]) != std::string_view::npos) end--;
      const bool has_dot = end > at && text_.substr(at, end - at).find('.') != text_.npos;
      if (begin < at && has_dot) return {begin, end};
    }
    return {text_.size(), text_.size()};
  }

  const std::string_view text_;
  bool is_new_ = true;
  std::array<size_t, 3> places_ = {};
  ByteRange mail_ = {};
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

size_t take_markdown_role(const SplitText& document, std::vector<RunItem>& run, size_t code) {
  if (run.empty() || run.back().kind != RunItem::Kind::text || run.back().end != code) return code;
  if (document.bytes[code - 1] != '}') return code;
  const std::string_view before = document.slice(run.back().begin, code);
  const size_t role = before.rfind('{');
  const bool is_role = role != before.npos && role + 2 < before.size() &&
                       before.substr(role + 1, before.size() - role - 2).find_first_of(" `{}") == before.npos;
  if (!is_role) return code;
  const size_t begin = run.back().end = run.back().begin + role;
  if (role == 0) run.pop_back();
  return begin;
}

void settle_markdown_run(const SplitText& document, std::vector<RunItem>& run) {
  separate_unmatched(document, run);
  separate_addresses(document, run);
}

}  // namespace qkv

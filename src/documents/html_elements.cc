#include "documents/html_elements.h"

#include <algorithm>
#include <array>

namespace qkv {
namespace {

using namespace std::string_view_literals;

// All sorted.
constexpr std::array kVoidElements = {"area"sv,  "base"sv,  "basefont"sv, "bgsound"sv, "br"sv,    "col"sv,
                                      "embed"sv, "frame"sv, "hr"sv,       "img"sv,     "input"sv, "keygen"sv,
                                      "link"sv,  "meta"sv,  "param"sv,    "source"sv,  "track"sv, "wbr"sv};
constexpr std::array kKeptElements = {"address"sv, "applet"sv,   "audio"sv, "canvas"sv,  "code"sv,     "embed"sv,
                                      "iframe"sv,  "listing"sv,  "math"sv,  "noembed"sv, "noframes"sv, "plaintext"sv,
                                      "pre"sv,     "rp"sv,       "rt"sv,    "rtc"sv,     "script"sv,   "style"sv,
                                      "svg"sv,     "textarea"sv, "time"sv,  "video"sv,   "xmp"sv};
constexpr std::array kBlockElements = {
    "address"sv, "article"sv,  "aside"sv,    "base"sv,     "blockquote"sv, "body"sv,     "button"sv,   "caption"sv,
    "center"sv,  "col"sv,      "colgroup"sv, "datalist"sv, "dd"sv,         "details"sv,  "dialog"sv,   "dir"sv,
    "div"sv,     "dl"sv,       "dt"sv,       "fieldset"sv, "figcaption"sv, "figure"sv,   "footer"sv,   "form"sv,
    "frame"sv,   "frameset"sv, "h1"sv,       "h2"sv,       "h3"sv,         "h4"sv,       "h5"sv,       "h6"sv,
    "head"sv,    "header"sv,   "hgroup"sv,   "hr"sv,       "html"sv,       "label"sv,    "legend"sv,   "li"sv,
    "link"sv,    "listing"sv,  "main"sv,     "menu"sv,     "meta"sv,       "nav"sv,      "noframes"sv, "noscript"sv,
    "ol"sv,      "optgroup"sv, "option"sv,   "p"sv,        "plaintext"sv,  "pre"sv,      "search"sv,   "section"sv,
    "select"sv,  "summary"sv,  "table"sv,    "tbody"sv,    "td"sv,         "template"sv, "textarea"sv, "tfoot"sv,
    "th"sv,      "thead"sv,    "title"sv,    "tr"sv,       "ul"sv,         "xmp"sv};
static_assert(std::ranges::is_sorted(kVoidElements) && std::ranges::is_sorted(kKeptElements) &&
              std::ranges::is_sorted(kBlockElements));

// A start tag of one of `starts` closes an open element of one of `closed`.
struct ImpliedEnd {
  std::string_view starts, closed;  // names between spaces
};
constexpr ImpliedEnd kImpliedEnds[] = {
    {" li ", " li "},
    {" dt dd ", " dt dd "},
    {" option ", " option "},
    {" optgroup ", " option optgroup "},
    {" td th ", " td th "},
    {" tr ", " td th tr "},
    {" tbody thead tfoot ", " td th tr tbody thead tfoot "},
    {" rt rp ", " rt rp "},
    {" address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 "
     "h3 "
     "h4 h5 h6 header hgroup hr li dt dd listing main menu nav ol p plaintext pre search section summary table ul xmp ",
     " p "},
};

bool holds_name(std::string_view names, std::string_view name) {
  const std::string_view spaced[] = {" ", name, " "};
  std::string key;
  for (const std::string_view part : spaced) key += part;
  return names.find(key) != names.npos;
}

bool closes_open_element(std::string_view start, std::string_view open) {
  return std::ranges::any_of(kImpliedEnds, [&](const ImpliedEnd& end) {
    return holds_name(end.closed, open) && holds_name(end.starts, start);
  });
}

}  // namespace

bool is_void_element(std::string_view name) { return std::ranges::binary_search(kVoidElements, name); }
bool is_block_element(std::string_view name) { return std::ranges::binary_search(kBlockElements, name); }
bool is_kept_element(std::string_view name) { return std::ranges::binary_search(kKeptElements, name); }

bool OpenElements::holds(const std::string& name) const {
  const auto places = places_.find(name);
  return places != places_.end() && !places->second.empty();
}

void OpenElements::push(const std::string& name) {
  const auto found = places_.try_emplace(name).first;
  found->second.push_back(open_.size());
  const size_t before = open_.empty() ? 0 : open_.back().blocks;
  open_.push_back({&found->first, before + (is_block_element(name) ? 1 : 0)});
}

void OpenElements::close_down_to(size_t count) {
  for (; open_.size() > count; open_.pop_back()) places_.find(*open_.back().name)->second.pop_back();
}

std::optional<size_t> OpenElements::count_after_end(const std::string& name) const {
  if (!holds(name)) return std::nullopt;
  const size_t place = places_.find(name)->second.back();
  if (!is_block_element(name) && open_.back().blocks > open_[place].blocks) return std::nullopt;
  return place;
}

size_t OpenElements::count_before_start(std::string_view name) const {
  size_t count = open_.size();
  while (count > 0 && closes_open_element(name, *open_[count - 1].name)) count--;
  return count;
}

}  // namespace qkv

#include "documents/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "documents/document.h"
#include "documents/html_tokens.h"
#include "documents/inline_run.h"
#include "documents/strings/string_part.h"

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

// The elements that are open at a place of a document. A stack, not the standard's tree: elements are closed by their
// end tags, by those of elements around them, and where a start tag implies it (<li>a<li>b).
class OpenElements {
 public:
  using Name = const std::string*;  // the same pointer for the same name

  Name intern(const std::string& name) { return &places_.try_emplace(name).first->first; }
  size_t size() const { return open_.size(); }
  bool holds(const std::string& name) const;
  void push(const std::string& name);
  // Closes elements until `count` are open.
  void close_down_to(size_t count);
  // Returns the number of elements that stay open after an end tag. It closes no block around its element.
  std::optional<size_t> count_after_end(const std::string& name) const;
  // Returns the number of elements that stay open before a start tag.
  size_t count_before_start(std::string_view name) const;

 private:
  struct Element {
    Name name;
    size_t blocks;  // open ones, itself included
  };
  std::unordered_map<std::string, std::vector<size_t>> places_;  // of each name in open_
  std::vector<Element> open_;
};

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

class HtmlSplitter {
 public:
  HtmlSplitter(SplitText& document, bool is_xml) : document_(document), is_xml_(is_xml) {}

  void split() {
    HtmlTokenizer tokenizer(document_.bytes);
    HtmlToken token;
    while (tokenizer.next(token, is_foreign())) {
      switch (token.kind) {
        case HtmlToken::Kind::start:
          start(token);
          break;
        case HtmlToken::Kind::end:
          end(token);
          break;
        case HtmlToken::Kind::text:
          add(RunItem::Kind::text, token);
          break;
        case HtmlToken::Kind::comment:
          add(is_cdata(token) ? RunItem::Kind::text : RunItem::Kind::single, token);
          break;
        case HtmlToken::Kind::raw:
          break;  // of an element that is kept
      }
    }
    end_kept(document_.bytes.size());
    flush();
  }

 private:
  // An element whose bytes stay.
  struct KeptElement {
    size_t place;  // in open_
    size_t begin;  // byte of the document
    bool is_block;
  };

  // Whether elements may be self-closing, and <style> is an ordinary element.
  bool is_foreign() const { return is_xml_ || open_.holds(svg_) || open_.holds(math_); }

  // CDATA sections of XML are text; those of <svg> in HTML are in an element that is kept.
  bool is_cdata(const HtmlToken& token) const {
    const std::string_view bytes = document_.slice(token.begin, token.end);
    return is_xml_ && bytes.starts_with("<![CDATA[") && bytes.ends_with("]]>");
  }

  void start(const HtmlToken& token) {
    const bool was_foreign = is_foreign();
    if (!was_foreign) close_down_to(open_.count_before_start(token.name), token.begin);
    const bool is_empty = is_void_element(token.name) ||
                          (token.is_self_closing && (was_foreign || token.name == svg_ || token.name == math_));
    if (!kept_) start_outside(token, is_empty);
    if (!is_empty) open_.push(token.name);
  }

  // A start tag that is not within a kept element.
  void start_outside(const HtmlToken& token, bool is_empty) {
    const bool is_block = is_block_element(token.name);
    if (is_block) flush();
    if (!is_empty && (token.is_untranslated || is_kept_element(token.name)))
      kept_ = KeptElement{open_.size(), token.begin, is_block};
    else if (token.name == "br")
      add_line_break(token);
    else if (!is_block)
      add(is_empty ? RunItem::Kind::single : RunItem::Kind::open, token);
  }

  void end(const HtmlToken& token) {
    if (is_xml_ && is_void_element(token.name)) return end_void(token);
    if (token.name == "br") return kept_ ? void() : add_line_break(token);  // as browsers read it
    const std::optional<size_t> count = open_.count_after_end(token.name);
    const bool ends_kept = kept_ && count == kept_->place;  // by its own end tag
    if (count) close_down_to(*count, ends_kept ? token.end : token.begin);
    if (kept_ || ends_kept) return;
    if (is_block_element(token.name))
      flush();
    else
      add(RunItem::Kind::close, token);
  }

  // The end tag of an element that HTML has no end tags for: <br></br> is one tag, others have no effect.
  void end_void(const HtmlToken& token) {
    const auto is_start = [&](const RunItem& item) {
      return item.end == token.begin && (item.kind == RunItem::Kind::single || item.kind == RunItem::Kind::line_break);
    };
    if (!kept_ && !run_.empty() && is_start(run_.back()))
      run_.back().end = token.end;
    else
      add(RunItem::Kind::close, token);
  }

  void add_line_break(const HtmlToken& token) {
    const bool ends_text = !run_.empty() && run_.back().kind == RunItem::Kind::text &&
                           ends_like_sentence(document_.slice(run_.back().begin, run_.back().end));
    if (ends_text || follows_line_break()) flush();
    add(RunItem::Kind::line_break, token);
  }

  bool follows_line_break() const {
    for (auto item = run_.rbegin(); item != run_.rend(); ++item) {
      if (item->kind == RunItem::Kind::line_break) return true;
      if (item->kind != RunItem::Kind::text) return false;
      const std::string_view text = document_.slice(item->begin, item->end);
      if (text.find_first_not_of("\t\n\f\r ") != text.npos) return false;
    }
    return false;
  }

  void add(RunItem::Kind kind, const HtmlToken& token) {
    if (kept_) return;
    const bool is_element = kind == RunItem::Kind::open || kind == RunItem::Kind::close;
    run_.push_back({kind, token.begin, token.end, is_element ? open_.intern(token.name) : nullptr});
  }

  // Closes elements; at: the byte where they end.
  void close_down_to(size_t count, size_t at) {
    open_.close_down_to(count);
    if (kept_ && count <= kept_->place) end_kept(at);
  }

  void end_kept(size_t at) {
    if (!kept_) return;
    if (!kept_->is_block) run_.push_back({RunItem::Kind::single, kept_->begin, at});
    kept_.reset();
  }

  void flush() {
    add_part(document_, run_);
    run_.clear();
  }

  const std::string svg_ = "svg", math_ = "math";
  SplitText& document_;
  const bool is_xml_;
  OpenElements open_;
  std::optional<KeptElement> kept_;
  std::vector<RunItem> run_;  // since the last block tag
};

// Whether the document declares another encoding than UTF-8, in a <meta> or the declaration of XML.
bool declares_other_encoding(std::string_view html) {
  const std::string begin = ascii_lower(html.substr(0, 1024));
  for (const std::string_view name : {"charset="sv, "encoding="sv}) {
    const size_t found = begin.find(name);
    if (found == begin.npos) continue;
    const size_t value = begin.find_first_not_of("\"' ", found + name.size());
    if (value != begin.npos && begin.compare(value, 5, "utf-8") != 0 && begin.compare(value, 4, "utf8") != 0)
      return true;
  }
  return false;
}

// References for all characters but those of ASCII, which most encodings share.
void append_in_ascii(std::string_view text, std::string& to) {
  std::string escaped;
  append_as_html(text, escaped);
  for_each_code_point(escaped, [&](UChar32 code, std::string_view character) {
    if (code < 0x80)
      to += character;
    else
      to += fmt::format("&#{};", code);
  });
}

constexpr TextSpelling kAsciiHtmlSpelling = {decode_xml, append_in_ascii};

SplitText split(std::string html, bool is_xml) {
  const TextSpelling* usual = is_xml ? &kXmlSpelling : &kHtmlSpelling;
  const TextSpelling* spelling = declares_other_encoding(html) ? &kAsciiHtmlSpelling : usual;
  SplitText document{.bytes = std::move(html), .spelling = spelling};
  HtmlSplitter(document, is_xml).split();
  return document;
}

}  // namespace

bool is_void_element(std::string_view name) { return std::ranges::binary_search(kVoidElements, name); }
bool is_block_element(std::string_view name) { return std::ranges::binary_search(kBlockElements, name); }
bool is_kept_element(std::string_view name) { return std::ranges::binary_search(kKeptElements, name); }

SplitText split_html(std::string html) { return split(std::move(html), false); }
SplitText split_xhtml(std::string xhtml) { return split(std::move(xhtml), true); }

namespace document_formats {

const DocumentFormat& html() {
  static const DocumentFormat format = {"html", "Web pages", {".html", ".htm"}, [](std::string text, const auto&) {
                                          return split_html(std::move(text));
                                        }};
  return format;
}

}  // namespace document_formats
}  // namespace qkv

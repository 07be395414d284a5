#include "documents/html.h"

#include <optional>
#include <utility>
#include <vector>

#include "documents/html_elements.h"
#include "documents/html_tokens.h"
#include "documents/inline_run.h"

namespace qkv {
namespace {

class HtmlSplitter {
 public:
  explicit HtmlSplitter(SplitText& document) : document_(document) {}

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
          add(RunItem::Kind::single, token);
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

  bool is_foreign() const { return open_.holds(svg_) || open_.holds(math_); }

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
  OpenElements open_;
  std::optional<KeptElement> kept_;
  std::vector<RunItem> run_;  // since the last block tag
};

}  // namespace

SplitText split_html(std::string html) {
  SplitText document{.bytes = std::move(html), .format = TextFormat::html};
  HtmlSplitter(document).split();
  return document;
}

}  // namespace qkv

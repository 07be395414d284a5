#include "documents/markdown/markdown_events.h"

#include <cstdint>
#include <functional>
#include <new>
#include <utility>

#include "core/fail.h"

namespace qkv {
namespace {

using EventKind = MarkdownEvent::Kind;
constexpr size_t kLargestMarkdown = size_t{1} << 30;  // md4c counts marks in 32 bits
constexpr size_t kMarkdownBudgetPerByte = 64;
constexpr int kNoMarkdownMemory = 1, kTooMuchMarkdown = 2;  // reasons to stop

// Takes what md4c reports. Its work is bounded by a budget, as tables and references of hostile documents take time
// that grows with the square of their size.
class MarkdownEventReader {
 public:
  explicit MarkdownEventReader(const std::string& document)
      : document_(document), budget_(kMarkdownBudgetPerByte * document.size() + (1 << 20)) {}

  std::vector<MarkdownEvent> read() {
    MD_PARSER parser = {};
    parser.flags = MD_DIALECT_GITHUB;
    parser.enter_block = [](MD_BLOCKTYPE type, void*, void* reader) {
      return of(reader).add({.kind = EventKind::enter_block, .block = type});
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* reader) {
      return of(reader).add({.kind = EventKind::leave_block, .block = type});
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* reader) {
      return of(reader).add({.kind = EventKind::enter_span, .span = type}, size_of(type, detail));
    };
    parser.leave_span = [](MD_SPANTYPE type, void* detail, void* reader) {
      return of(reader).add({.kind = EventKind::leave_span, .span = type}, size_of(type, detail));
    };
    parser.text = [](MD_TEXTTYPE type, const char* text, MD_SIZE size, void* reader) {
      return of(reader).add_text(type, text, size);
    };
    const int result = md_parse(document_.data(), static_cast<MD_SIZE>(document_.size()), &parser, this);
    if (result == kTooMuchMarkdown)
      fail("the cells and links of the Markdown take more than {} times its size", kMarkdownBudgetPerByte);
    if (result != 0) throw std::bad_alloc();
    return std::move(events_);
  }

 private:
  static MarkdownEventReader& of(void* reader) { return *static_cast<MarkdownEventReader*>(reader); }

  // Returns the size of the destination and title of a link, which md4c reads for each reference to them.
  static size_t size_of(MD_SPANTYPE type, const void* detail) {
    if (type != MD_SPAN_A && type != MD_SPAN_IMG) return 0;
    const auto* link = static_cast<const MD_SPAN_A_DETAIL*>(detail);  // an image has the same members
    return size_t{link->href.size} + link->title.size;
  }

  int add(const MarkdownEvent& event, size_t cost = 0) noexcept {
    cost += 8;
    if (cost > budget_) return kTooMuchMarkdown;
    budget_ -= cost;
    try {
      events_.push_back(event);
    } catch (...) {
      return kNoMarkdownMemory;
    }
    return 0;
  }

  int add_text(MD_TEXTTYPE type, const char* text, size_t size) noexcept {
    MarkdownEvent event{.text = type};
    if (type == MD_TEXT_SOFTBR) event.kind = EventKind::soft_break;
    if (type == MD_TEXT_BR) event.kind = EventKind::hard_break;
    const char* const begin = document_.data();
    const char* const end = begin + document_.size();
    const std::less_equal<> not_after;  // of pointers into different objects too
    if (event.kind == EventKind::text && not_after(begin, text) && not_after(text, end) &&
        size <= static_cast<size_t>(end - text)) {
      event.begin = static_cast<size_t>(text - begin);
      event.end = event.begin + size;
    }
    return add(event);
  }

  const std::string& document_;
  size_t budget_;
  std::vector<MarkdownEvent> events_;
};

}  // namespace

std::vector<MarkdownEvent> read_markdown(const std::string& document) {
  if (document.size() > kLargestMarkdown)
    fail("the Markdown has {} bytes (at most {} are accepted)", document.size(), kLargestMarkdown);
  return MarkdownEventReader(document).read();
}

}  // namespace qkv

#include "documents/markdown/markdown_events.h"

#include <cstdint>
#include <functional>
#include <new>
#include <utility>

#include "core/fail.h"

namespace qkv {
namespace {

using Kind = MarkdownEvent::Kind;
constexpr size_t kLargestDocument = size_t{1} << 30;  // md4c counts marks in 32 bits
constexpr size_t kBudgetPerByte = 64;
constexpr int kOutOfMemory = 1, kTooMuch = 2;  // reasons to stop

// Takes what md4c reports. Its work is bounded by a budget, as tables and references of hostile documents take time
// that grows with the square of their size.
class EventReader {
 public:
  explicit EventReader(const std::string& document)
      : document_(document), budget_(kBudgetPerByte * document.size() + (1 << 20)) {}

  std::vector<MarkdownEvent> read() {
    MD_PARSER parser = {};
    parser.flags = MD_DIALECT_GITHUB;
    parser.enter_block = [](MD_BLOCKTYPE type, void*, void* reader) {
      return of(reader).add({.kind = Kind::enter_block, .block = type});
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* reader) {
      return of(reader).add({.kind = Kind::leave_block, .block = type});
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* reader) {
      return of(reader).add({.kind = Kind::enter_span, .span = type}, size_of(type, detail));
    };
    parser.leave_span = [](MD_SPANTYPE type, void* detail, void* reader) {
      return of(reader).add({.kind = Kind::leave_span, .span = type}, size_of(type, detail));
    };
    parser.text = [](MD_TEXTTYPE type, const char* text, MD_SIZE size, void* reader) {
      return of(reader).add_text(type, text, size);
    };
    const int result = md_parse(document_.data(), static_cast<MD_SIZE>(document_.size()), &parser, this);
    if (result == kTooMuch)
      fail("the cells and links of the Markdown take more than {} times its size", kBudgetPerByte);
    if (result != 0) throw std::bad_alloc();
    return std::move(events_);
  }

 private:
  static EventReader& of(void* reader) { return *static_cast<EventReader*>(reader); }

  // Returns the size of the destination and title of a link, which md4c reads for each reference to them.
  static size_t size_of(MD_SPANTYPE type, const void* detail) {
    if (type != MD_SPAN_A && type != MD_SPAN_IMG) return 0;
    const auto* link = static_cast<const MD_SPAN_A_DETAIL*>(detail);  // an image has the same members
    return size_t{link->href.size} + link->title.size;
  }

  int add(const MarkdownEvent& event, size_t cost = 0) noexcept {
    cost += 8;
    if (cost > budget_) return kTooMuch;
    budget_ -= cost;
    try {
      events_.push_back(event);
    } catch (...) {
      return kOutOfMemory;
    }
    return 0;
  }

  int add_text(MD_TEXTTYPE type, const char* text, size_t size) noexcept {
    MarkdownEvent event{.text = type};
    if (type == MD_TEXT_SOFTBR) event.kind = Kind::soft_break;
    if (type == MD_TEXT_BR) event.kind = Kind::hard_break;
    const char* const begin = document_.data();
    const char* const end = begin + document_.size();
    const std::less_equal<> not_after;  // of pointers into different objects too
    if (event.kind == Kind::text && not_after(begin, text) && not_after(text, end) &&
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
  if (document.size() > kLargestDocument)
    fail("the Markdown has {} bytes (at most {} are accepted)", document.size(), kLargestDocument);
  return EventReader(document).read();
}

}  // namespace qkv

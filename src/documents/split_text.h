// A text of which parts are translated, while every other byte stays as it is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// How a document spells the characters of its texts: "&lt;", "\u00e9", or as they are.
struct TextSpelling {
  // Appends what is spelled at the beginning of the text, and returns its bytes; 0 for a character that stands for
  // itself.
  size_t (*decode)(std::string_view text, std::string& to);
  // Appends characters as the document spells them. Of a part without tags, it is called once with the whole text.
  void (*append)(std::string_view text, std::string& to);
};

extern const TextSpelling kPlainSpelling;  // every character stands for itself
extern const TextSpelling kHtmlSpelling;   // references
extern const TextSpelling kXmlSpelling;    // references of XML, and CDATA sections

struct ByteRange {
  size_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// Markup within a part. Elements enclose a word of the text; those that do not are single, as are `<br>`, comments,
// and elements whose content stays.
struct InlineTag {
  enum class Kind { open, close, single };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::single;
  size_t at = 0;                                   // byte of the part's text before which it stands
  size_t begin = 0, end = 0;                       // its bytes in the document; none if it has only other bytes
  size_t partner = kNone;                          // tag of the same part that closes or opens the element, if any
  bool space_before = false, space_after = false;  // whether white space is next to a single tag
  bool breaks_line = false;                        // <br>
  std::string written = {};                        // in a translation, if not its bytes in the document
};

struct TextPart {
  size_t begin = 0, end = 0;                // bytes of the document that are replaced
  std::string text = {};                    // to translate, with its characters decoded and without tags
  std::vector<InlineTag> tags = {};         // in their order; matched elements are nested
  const TextSpelling* spelling = nullptr;       // of a translation, if not that of the document
  std::optional<ByteRange> source = {};     // bytes that the text was read from, if not those that are replaced
  std::string before = {}, after = {};      // written around the bytes of the source or a translation
  std::string opening = {}, closing = {};   // written around a translation that differs from the text
  size_t lines = 0;                         // a translation has at most as many; 0: it is not broken into lines
  std::string_view line_end = "\n";
};

struct SplitText {
  std::string bytes = {};
  const TextSpelling* spelling = &kPlainSpelling;
  std::vector<TextPart> parts = {};  // in their order, without overlap

  std::string_view bytes_of(const TextPart& part) const { return slice(part.begin, part.end); }
  std::string_view source_of(const TextPart& part) const {
    return part.source ? slice(part.source->begin, part.source->end) : bytes_of(part);
  }
  std::string_view bytes_of(const InlineTag& tag) const {
    return tag.written.empty() ? slice(tag.begin, tag.end) : std::string_view(tag.written);
  }
  std::string_view slice(size_t begin, size_t end) const { return std::string_view(bytes).substr(begin, end - begin); }
};

// Returns the document with its parts replaced, one replacement for each.
std::string join(const SplitText& document, std::span<const std::string> replacements);

// Throws Error if the text is not valid UTF-8.
void expect_utf8(std::string_view text);

}  // namespace qkv

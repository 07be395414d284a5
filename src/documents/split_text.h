// A text of which parts are translated, while every other byte stays as it is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"

namespace qkv {

struct SplitText;
struct TextPart;

// A tag as it stands in a translation.
struct WrittenTag {
  size_t tag = 0;             // place in the part's tags
  size_t begin = 0, end = 0;  // bytes of the translation
};

// How a document spells the characters of its texts: "&lt;", "\u00e9", or as they are.
struct TextSpelling {
  // Appends what is spelled at the beginning of the text, and returns its bytes; 0 for a character that stands for
  // itself.
  size_t (*decode)(std::string_view text, std::string& to);
  // Appends characters as the document spells them. For a part without tags it is called once, with the whole text.
  void (*append)(std::string_view text, std::string& to);
  // Changes a translation with its tags where a tag would mean something else next to other characters; nullptr: none.
  void (*repair)(const SplitText& document, const TextPart& part, std::span<const WrittenTag> tags,
                 std::string& written) = nullptr;
};

// For spellings in which every character stands for itself, and texts that their format has decoded. Returns 0.
size_t decode_nothing(std::string_view text, std::string& to);
// For references of XML and HTML, and CDATA sections.
size_t decode_xml(std::string_view text, std::string& to);

extern const TextSpelling kPlainSpelling;  // every character stands for itself
extern const TextSpelling kHtmlSpelling;   // references
extern const TextSpelling kXmlSpelling;    // references of XML, and CDATA sections

// Markup around text that may not stand alone, such as a run of Word with its properties.
struct TextRun {
  std::string opening = {}, closing = {};
};

// Markup within a part. Elements enclose a word of the text; those that do not are single, as are `<br>`, comments,
// and elements whose content stays.
struct InlineTag {
  enum class Kind { open, close, single };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::single;
  size_t at = 0;              // byte of the part's text before which it stands
  size_t begin = 0, end = 0;  // its bytes in the document; none if it has only other bytes
  size_t partner = kNone;     // tag of the same part that closes or opens the element, if any
  // White space next to a single tag, or after the end of an element that a single tag ends.
  bool space_before = false, space_after = false;
  bool breaks_line = false;  // it is white space itself: <br>, or a space in markup
  std::string written = {};  // in a translation, if not its bytes in the document
  size_t run = kNone;        // of an element: SplitText::runs around its text, if another one
};

struct TextPart {
  size_t begin = 0, end = 0;               // bytes of the document that are replaced
  std::string text = {};                   // to translate, with its characters decoded and without tags
  std::vector<InlineTag> tags = {};        // in their order; matched elements are nested
  bool keeps_tag_order = false;            // in a translation
  const TextSpelling* spelling = nullptr;  // of a translation, if not that of the document
  std::optional<ByteRange> source = {};    // bytes that the text was read from, if not those that are replaced
  std::string before = {}, after = {};     // written around the bytes of the source or a translation
  std::string opening = {}, closing = {};  // written around a translation that differs from the text
  size_t run = InlineTag::kNone;           // SplitText::runs around each text between the tags of a translation
  size_t lines = 0;                        // a translation has at most as many; 0: it is not broken into lines
  std::string line_end = "\n";             // what ends a line, and what begins the next one
};

struct SplitText {
  std::string bytes = {};
  const TextSpelling* spelling = &kPlainSpelling;
  // In the order of their beginnings. They do not overlap, but a part may lie within a single tag of another one, as a
  // footnote does.
  std::vector<TextPart> parts = {};
  std::vector<TextRun> runs = {};
  size_t written_bytes = 0;  // of the tags of all parts

  std::string_view bytes_of(const TextPart& part) const { return slice(part.begin, part.end); }
  std::string_view bytes_of(const InlineTag& tag) const {
    return tag.written.empty() ? slice(tag.begin, tag.end) : std::string_view(tag.written);
  }
  std::string_view slice(size_t begin, size_t end) const { return std::string_view(bytes).substr(begin, end - begin); }
};

// Returns the document with its parts replaced, one replacement for each. The replacement of a part has those of the
// parts within it.
std::string join(const SplitText& document, std::span<const std::string> replacements);

// Returns the bytes of a range with the parts within it replaced. Those before `first` are not looked at.
std::string join_range(const SplitText& document, ByteRange range, size_t first,
                       std::span<const std::string> replacements);

// Throws Error if tags with other bytes than those of the document take more than 4 times its size, and 1 MiB.
void check_written_bytes(const SplitText& document, size_t written_bytes);

// Throws Error if the text is not valid UTF-8.
void expect_utf8(std::string_view text);

}  // namespace qkv

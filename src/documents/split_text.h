// A text of which parts are translated, while every other byte stays as it is: plain text, HTML or subtitles.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class TextFormat { lines, html, srt };

// Markup within a part. Elements enclose a word of the text; those that do not are single, as are `<br>`, comments,
// and elements whose content stays.
struct InlineTag {
  enum class Kind { open, close, single };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::single;
  size_t at = 0;                                   // byte of the part's text before which it stands
  size_t begin = 0, end = 0;                       // its bytes in the document
  size_t partner = kNone;                          // tag of the same part that closes or opens the element, if any
  bool space_before = false, space_after = false;  // whether white space is next to a single tag
  bool breaks_line = false;                        // <br>
};

struct TextPart {
  size_t begin = 0, end = 0;         // its bytes in the document
  std::string text = {};             // to translate: without tags, HTML's character references decoded
  std::vector<InlineTag> tags = {};  // in their order; matched elements are nested
};

struct SplitText {
  std::string bytes = {};
  TextFormat format = TextFormat::lines;
  std::vector<TextPart> parts = {};  // in their order, without overlap

  std::string_view bytes_of(const TextPart& part) const { return slice(part.begin, part.end); }
  std::string_view bytes_of(const InlineTag& tag) const { return slice(tag.begin, tag.end); }
  std::string_view slice(size_t begin, size_t end) const { return std::string_view(bytes).substr(begin, end - begin); }
};

// Returns the document with its parts replaced, one replacement for each.
std::string join(const SplitText& document, std::span<const std::string> replacements);

// Splits plain text at LF, CRLF and CR. Each line that is not only white space is a part; line ends stay, as does a
// byte-order mark. The text is valid UTF-8.
SplitText split_lines(std::string text);

// The ends of the names of files that split_text takes.
inline constexpr std::array<std::string_view, 3> kTextFileExtensions = {".txt", ".html", ".srt"};

// Returns the format of a file by the end of its name, in any case; nullopt if it is not one of kTextFileExtensions.
std::optional<TextFormat> format_of_file(std::string_view name);

// Splits a text. Throws Error if it is not valid UTF-8.
SplitText split_text(TextFormat format, std::string text);

}  // namespace qkv

// XML files that hold texts in two languages: a source is copied to where its translation belongs, with its markup.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "documents/inline_run.h"
#include "documents/split_text.h"
#include "documents/xml_tokens.h"

namespace qkv {

// The role of an element within a text.
struct InlineMarkup {
  enum class Kind {
    element,  // encloses text
    code,     // stays with its content
    begin,    // a code that begins a range of text, such as <bpt>
    end,      // a code that ends it, such as <ept>
  };

  Kind kind = Kind::element;
  std::string pair = {};     // the same for the begin and the end of a range
  bool is_kept = false;      // the range is not translated
  bool keeps_order = false;  // the text's markup keeps its order
};

using InlineMarkupRule = std::function<InlineMarkup(const XmlToken& start)>;

// Returns the language that the option names, which is a tag such as "de" or "pt-BR". Throws Error for other text.
const std::string& checked_target_language(const std::string& tag);

// A document and its tokens. Elements are named by their start tokens.
class BilingualXml {
 public:
  struct WrittenAttribute {
    std::string_view name, bytes;  // with the white space before it
  };

  static constexpr size_t kNone = XmlToken::kNone;

  // Throws Error if the text is not XML whose root element has this name.
  BilingualXml(std::string text, std::string_view root_name);

  SplitText document;
  XmlTokens xml;
  size_t root = 0;

  const XmlToken& token(size_t i) const { return xml.tokens[i]; }
  // Whether the element has this name, in the namespace of the root.
  bool is(size_t element, std::string_view name) const;
  std::vector<size_t> children(size_t element) const;
  // Returns the first of these elements that has the name; kNone if there is none.
  size_t find(std::span<const size_t> elements, std::string_view name) const;
  // Whether the element has no element and no text but white space.
  bool is_blank(size_t element) const;
  bool is_empty_tag(size_t element) const;
  ByteRange whole(size_t element) const;
  ByteRange content(size_t element) const;

  // The name as it is written, with its prefix.
  std::string_view written_name(size_t element) const;
  std::vector<WrittenAttribute> written_attributes(size_t element) const;
  // The start tag without its end, and without these attributes: "<target xml:lang='de'".
  std::string opened_tag(size_t element, std::span<const std::string_view> without = {}) const;
  std::string end_tag(size_t element) const;
  // The attributes of a source that its copy needs, which are the declarations of namespaces and xml:space, but for
  // those that the other element has.
  std::string copied_attributes(size_t source, size_t other = kNone) const;
  // The line break and the white space before an element; "" if it does not begin a line.
  std::string_view indentation(size_t element) const;

  // Returns a part whose text is that of the element, and whose replacement has all of the element's content; its place
  // is not set. Returns nullopt if there are no letters and digits.
  std::optional<TextPart> copied_part(size_t element, const InlineMarkupRule& rule, WhiteSpace white_space);
};

}  // namespace qkv

// XML as a sequence of tags, text and other markup with their places in the document, read by expat.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

// The attributes of a start tag: names as in XmlToken, and values with their characters decoded.
using XmlAttributes = std::vector<std::pair<const std::string*, std::string>>;

// Documents have millions of these, so a token takes 32 bytes.
struct XmlToken {
  // text: characters, references and CDATA sections next to each other. other: comments, processing instructions, the
  // declaration.
  enum class Kind : uint8_t { start, end, text, other };
  static constexpr uint32_t kNone = static_cast<uint32_t>(-1);

  Kind kind = Kind::other;
  uint32_t begin = 0, end = 0;            // bytes of the document; none for the end of <x/>
  uint32_t partner = kNone;               // of a tag: the token that ends or starts its element
  const std::string* name = nullptr;      // of a tag: "namespace local", or "local"; the same pointer for the same name
  const XmlAttributes* listed = nullptr;  // the attributes; nullptr: none

  const XmlAttributes& attributes() const;                    // empty but for start tags
  std::string_view local() const;                             // the name without its namespace
  std::string_view space() const;                             // the namespace; "" if there is none
  const std::string* attribute(std::string_view name) const;  // nullptr: none
};

struct XmlTokens {
  std::vector<XmlToken> tokens = {};
  std::deque<std::string> names = {};
  std::deque<XmlAttributes> attributes = {};
};

// Returns the tokens of a document in UTF-8, which cover it but for white space outside of the root. Throws Error if it
// is not well formed, declares entities, nests elements more than 512 deep, or has more tokens than 2^18 and one for
// each 4 bytes together. Nothing outside of the document is read.
XmlTokens read_xml(std::string_view document);

}  // namespace qkv

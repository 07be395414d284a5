// XML as a sequence of tags, text and other markup with their places in the document, read by expat.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qkv {

struct XmlToken {
  // text: characters, references and CDATA sections next to each other. other: comments, processing instructions, the
  // declaration.
  enum class Kind { start, end, text, other };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::other;
  size_t begin = 0, end = 0;          // bytes of the document; none for the end of <x/>
  const std::string* name = nullptr;  // of a tag: "namespace local", or "local"; the same pointer for the same name
  size_t partner = kNone;             // of a tag: the token that ends or starts its element
  std::vector<std::pair<const std::string*, std::string>> attributes = {};  // of a start tag, names as above

  std::string_view local() const;                             // the name without its namespace
  std::string_view space() const;                             // the namespace; "" if there is none
  const std::string* attribute(std::string_view name) const;  // nullptr: none
};

struct XmlTokens {
  std::vector<XmlToken> tokens = {};
  std::deque<std::string> names = {};
};

// Returns the tokens of a document in UTF-8, which cover it but for white space outside of the root. Throws Error if it
// is not well formed, declares entities, or nests elements more than 512 deep. Nothing outside of the document is read.
XmlTokens read_xml(std::string_view document);

}  // namespace qkv

// The source of a template as tokens, with white space removed around tags as Jinja does with trim_blocks and
// lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::jinja {

struct Token {
  enum class Kind { text, begin_print, end_print, begin_block, end_block, name, string, integer, real, symbol, end };

  Kind kind = Kind::end;
  std::string text = {};  // of text and strings: what they stand for
  int64_t integer = 0;
  double real = 0;
  int line = 1;

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

// Throws Error, with the line, for what is not a template. The source is valid UTF-8. The last token is `end`.
std::vector<Token> tokenize(std::string_view source);

}  // namespace qkv::jinja

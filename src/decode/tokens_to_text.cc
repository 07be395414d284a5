// qkv::tokens_to_text: generated tokens next to their most probable alternatives.
#include <fmt/format.h>

#include <cmath>

#include "qkv/generator.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr int kColumn = 12;  // wide enough for most tokens

std::string name_of(const TokenAlternative& token) { return token.end ? "<end>" : visible(token.text); }

}  // namespace

std::string tokens_to_text(const Generation& generation) {
  std::string lines = fmt::format("    p  {:<{}}  the most probable\n", "token", kColumn);
  for (const GeneratedToken& token : generation.tokens) {
    std::string line = fmt::format("{:.3f}  {:<{}}", std::exp(token.log_probability), visible(token.text), kColumn);
    for (const TokenAlternative& other : token.alternatives)
      line += fmt::format("  {} {:.3f}", name_of(other), std::exp(other.log_probability));
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  }
  return lines;
}

}  // namespace qkv

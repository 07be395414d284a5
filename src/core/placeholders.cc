#include "core/placeholders.h"

#include "core/fail.h"

namespace qkv {

std::string fill_in(std::string_view page, std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  std::string filled;
  for (const auto& [placeholder, text] : texts) {
    const size_t at = page.find(placeholder);
    if (at == page.npos)
      fail("template: expected {} (found none, or before the placeholder listed before it)", placeholder);
    filled.append(page.substr(0, at)).append(text);
    page.remove_prefix(at + placeholder.size());
  }
  return filled.append(page);
}

std::string inside_script(std::string_view json) {
  std::string safe;
  for (const char c : json) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
  return safe;
}

}  // namespace qkv

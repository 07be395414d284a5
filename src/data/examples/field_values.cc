#include "data/examples/field_values.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace qkv {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::optional<double> number_in(std::string_view field) {
  std::string_view text = without_blanks(field);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  if (!std::isfinite(static_cast<float>(number))) return {};
  return number;
}

}  // namespace qkv

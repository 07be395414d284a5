#include "recommend/plain_title.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::array<std::string_view, 22> kArticles = {"the", "a",   "an",  "le",  "la",  "les", "l'", "un",
                                                        "une", "des", "der", "die", "das", "ein", "el", "los",
                                                        "las", "il",  "lo",  "i",   "gli", "det"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string plain_title(std::string_view title) {
  std::string plain;
  for (const char c : find_invalid_utf8(title) == title.npos ? lowercase(title) : std::string(title)) {
    if (c == ' ' && (plain.empty() || plain.back() == ' ')) continue;
    plain += c;
  }
  if (plain.ends_with(' ')) plain.pop_back();
  return plain;
}

std::string_view without_year(std::string_view plain) {
  constexpr size_t kYear = std::string_view(" (1995)").size();
  if (plain.size() <= kYear) return plain;
  const std::string_view year = plain.substr(plain.size() - kYear);
  const bool there = year.starts_with(" (") && year.ends_with(')') && std::ranges::all_of(year.substr(2, 4), is_digit);
  return there ? plain.substr(0, plain.size() - kYear) : plain;
}

std::vector<std::string> spellings(std::string_view title) {
  std::vector<std::string> found = {plain_title(title)};
  const std::string_view plain = found.front(), name = without_year(plain);
  const size_t comma = name.rfind(", ");
  if (comma == name.npos) return found;
  const std::string_view article = name.substr(comma + 2);
  if (std::ranges::find(kArticles, article) == kArticles.end()) return found;
  std::string moved(article);
  if (!article.ends_with('\'')) moved += ' ';
  moved += name.substr(0, comma);
  moved += plain.substr(name.size());
  found.push_back(std::move(moved));
  return found;
}

size_t edit_distance(std::string_view a, std::string_view b, size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= most) return most;
  std::vector<size_t> row(b.size() + 1);  // row[j]: distance of the first i bytes of a and the first j of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); j++)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
  }
  return std::min(row.back(), most);
}

}  // namespace qkv

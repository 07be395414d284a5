#include "recommend/titles.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "core/fail.h"
#include "data/log/table.h"
#include "qkv/recommender.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr std::array<std::string_view, 22> kArticles = {"the", "a",   "an",  "le",  "la",  "les", "l'", "un",
                                                        "une", "des", "der", "die", "das", "ein", "el", "los",
                                                        "las", "il",  "lo",  "i",   "gli", "det"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr size_t kMostCommas = 16;  // maximum number of commas in one title of a list

// Returns the text without these characters at its ends.
std::string_view trimmed(std::string_view text, std::string_view letters = " ") {
  const size_t begin = text.find_first_not_of(letters);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(letters) - begin + 1);
}

// Returns a title as one line: control characters, such as line ends in a quoted field, become spaces.
std::string in_one_line(std::string_view title) {
  std::string line(title);
  std::ranges::replace_if(
      line, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  return line;
}

// Returns the columns of id and title.
std::pair<size_t, size_t> columns_of(std::span<const std::string_view> first, const std::vector<std::string>& columns,
                                     const Place& where) {
  if (columns.size() == 2) return {column_of(columns[0], first, where), column_of(columns[1], first, where)};
  if (!columns.empty()) fail("columns must name two columns, id and title (names {})", columns.size());
  if (first.size() < 2) fail("{}: expected an id and a title (found 1 column)", where.text());
  for (size_t i = 1; i < first.size(); i++)
    if (const std::string name = plain_title(first[i]); name == "title" || name == "name") return {0, i};
  return {0, 1};
}

// Returns whether each word of a plain text begins a word of the title.
bool has_words(const std::string& title, std::string_view plain) {
  const std::string spelling = ' ' + plain_title(title);
  for (size_t begin = 0; begin < plain.size();) {
    const size_t end = std::min(plain.find(' ', begin), plain.size());
    if (spelling.find(' ' + std::string(plain.substr(begin, end - begin))) == spelling.npos) return false;
    begin = end + 1;
  }
  return true;
}

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

Titles::Titles(const std::string& path, const std::vector<std::string>& columns, IsItem is_item)
    : is_item_(std::move(is_item)) {
  std::pair<size_t, size_t> places;
  read_table(path, [&](std::span<const std::string_view> fields, const Place& where) {
    if (rows_.empty()) places = columns_of(fields, columns, where);
    if (fields.size() <= std::max(places.first, places.second))
      fail("{}: expected id and title in columns {} and {} (found {} columns)", where.text(), places.first + 1,
           places.second + 1, fields.size());
    add(fields[places.first], fields[places.second]);  // a header does no harm, because its id is not an item
  });
}

void Titles::add(std::string_view item, std::string_view title) {
  if (!by_item_.try_emplace(std::string(item), rows_.size()).second) return;
  std::string line = in_one_line(title);
  for (const std::string& spelling : spellings(line)) {
    if (spelling.empty()) continue;
    with_year_[spelling].push_back(rows_.size());
    const std::string_view rest = without_year(spelling);
    if (rest.size() < spelling.size()) without_year_[std::string(rest)].push_back(rows_.size());
  }
  rows_.push_back({std::string(item), std::move(line)});
}

const std::string& Titles::title(const std::string& item) const {
  static const std::string none;
  const auto place = by_item_.find(item);
  return place == by_item_.end() ? none : rows_[place->second].title;
}

std::vector<std::string> Titles::find(std::string_view text) const {
  if (is_item_(text)) return {std::string(text)};
  for (const Index* index : {&with_year_, &without_year_})
    if (const auto place = index->find(plain_title(text)); place != index->end()) {
      std::vector<std::string> items, known;
      for (const size_t row : place->second) {
        items.push_back(rows_[row].item);
        if (is_item_(items.back())) known.push_back(items.back());
      }
      return known.empty() ? items : known;
    }
  return {};
}

std::vector<std::string> Titles::near(std::string_view text, int64_t most) const {
  const std::string plain = plain_title(text);
  std::vector<std::pair<size_t, std::string>> found;
  for (const Row& row : rows_) {
    if (!is_item_(row.item)) continue;
    size_t least = plain.size() / 3 + 1;  // a third of the letters may differ
    for (const std::string& spelling : spellings(row.title))
      for (const std::string_view title : {std::string_view(spelling), without_year(spelling)})
        least = std::min(least, edit_distance(plain, title, least));
    if (least <= plain.size() / 3) found.emplace_back(least, row.title);
  }
  std::ranges::stable_sort(found, {}, [](const auto& title) { return title.first; });
  std::vector<std::string> titles;
  for (auto& [letters, title] : found)
    if (std::ssize(titles) < most && std::ranges::find(titles, title) == titles.end()) titles.push_back(title);
  return titles;
}

std::vector<std::string> Titles::suggest(std::string_view text, int64_t most,
                                         const std::vector<std::string>& items) const {
  std::vector<std::string> found = find(text);
  const auto is_full = [&] { return std::ssize(found) >= most; };
  const auto add = [&](const std::string& item) {
    if (!is_full() && std::ranges::find(found, item) == found.end()) found.push_back(item);
  };
  for (auto item = items.begin(); rows_.empty() && item != items.end() && !is_full(); item++)
    if (item->starts_with(text)) add(*item);
  const std::string plain = plain_title(text);
  std::vector<std::string> inside;
  for (auto row = rows_.begin(); !plain.empty() && row != rows_.end() && !is_full(); row++) {
    if (!is_item_(row->item)) continue;
    for (const std::string& spelling : spellings(row->title))
      if (spelling.starts_with(plain))
        add(row->item);
      else if (std::ssize(inside) < most && spelling.find(" " + plain) != spelling.npos)
        inside.push_back(row->item);
  }
  for (const std::string& item : inside) add(item);
  for (auto row = rows_.begin(); !plain.empty() && row != rows_.end() && !is_full(); row++)
    if (is_item_(row->item) && has_words(row->title, plain)) add(row->item);
  if (found.empty())
    for (const std::string& title : near(text, most))
      for (const std::string& item : find(title)) add(item);
  found.resize(std::min(found.size(), static_cast<size_t>(most)));
  return found;
}

std::vector<std::string> Titles::similar(std::string_view text, int64_t most) const {
  std::vector<std::string> titles;
  for (const std::string& item : suggest(text, most, {}))
    if (const std::string& found = title(item); !found.empty() && std::ranges::find(titles, found) == titles.end())
      titles.push_back(found);
  return titles;
}

std::string Titles::doubt(const std::vector<std::string>& items) const {
  if (rows_.empty() || std::ranges::any_of(rows_, [&](const Row& row) { return is_item_(row.item); })) return "";
  std::vector<std::string> ids;
  for (const Row& row : rows_) ids.push_back(row.item);
  return fmt::format("none of the {} ids is an item of the run{}", ids.size(), example_ids(ids, items));
}

std::vector<std::string> Titles::split(std::string_view list) const {
  std::vector<size_t> ends;  // ends of the texts between commas
  for (size_t comma = list.find(','); comma != list.npos; comma = list.find(',', comma + 1)) ends.push_back(comma);
  ends.push_back(list.size());
  std::vector<std::string> parts;
  size_t begin = 0, lost = list.npos;  // lost: beginning of the text not found so far
  const auto give_up = [&](size_t end) {
    const std::string_view part = trimmed(list.substr(std::min(lost, end), end - std::min(lost, end)), " ,");
    if (!part.empty()) parts.emplace_back(part);
    lost = list.npos;
  };
  for (size_t i = 0; i < ends.size(); i++) {
    size_t last = std::min(ends.size(), i + kMostCommas + 1);
    const auto part = [&] { return trimmed(list.substr(begin, ends[last - 1] - begin)); };
    while (last > i && find(part()).empty()) last--;
    if (last > i) {
      if (begin > 0) give_up(begin - 1);
      parts.emplace_back(part());
      i = last - 1;
    } else if (lost == list.npos) {
      lost = begin;
    }
    begin = ends[i] + 1;
  }
  give_up(list.size());
  return parts;
}

}  // namespace qkv

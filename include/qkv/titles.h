// Titles of items: a table of ids and titles, to display items and to find them by title.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// A table of titles. Comparison ignores case and repeated blanks. "Matrix, The (1999)" also matches "The Matrix
// (1999)", and both match without the year. Immutable; methods may be called from several threads.
class Titles {
 public:
  using IsItem = std::function<bool(std::string_view)>;

  // Makes an empty table: items have only ids.
  explicit Titles(IsItem is_item) : is_item_(std::move(is_item)) {}

  // Reads a table with columns separated by commas, semicolons, tabs or "::", with quotes as in CSV. `columns` are
  // those of id and title: names in the first line, or numbers from 1. If empty, the id is the first column, and the
  // title is the column "title" or "name", or else the second one. Throws Error, naming file and line.
  Titles(const std::string& path, const std::vector<std::string>& columns, IsItem is_item);

  // Returns the title of an item; "" if it has none.
  const std::string& title(const std::string& item) const;

  // Returns the items that a text can mean: the item with this id, or else all with this title. If several match and
  // is_item accepts some of them, only these are returned.
  std::vector<std::string> find(std::string_view text) const;

  // Returns the titles that are most similar to a text, most similar first.
  std::vector<std::string> near(std::string_view text, int64_t most = 3) const;

  // Returns items for a text that is being typed: those that it means, then those whose title begins with it, then
  // those with a word that begins with it, then those with words that begin with each of its words; if there are none,
  // those with similar titles. Without a table of titles, returns the `items` that begin with it.
  std::vector<std::string> suggest(std::string_view text, int64_t most, const std::vector<std::string>& items) const;

  // Returns the titles of the items that `suggest` returns for a text that is no title.
  std::vector<std::string> similar(std::string_view text, int64_t most = 3) const;

  // Returns why no title will be shown, with an id of each side, if none of the ids in the table is an item; otherwise
  // "". items: all of them.
  std::string doubt(const std::vector<std::string>& items) const;

  // Splits a list at commas into texts that find() knows, which may contain commas themselves. From the left, it takes
  // the longest text that is found; text that is not found extends to the next one that is.
  std::vector<std::string> split(std::string_view list) const;

 private:
  struct Row {
    std::string item, title;
  };
  using Index = std::unordered_map<std::string, std::vector<size_t>>;  // by plain title: rows

  void add(std::string_view item, std::string_view title);

  IsItem is_item_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> by_item_;
  Index with_year_, without_year_;
};

}  // namespace qkv

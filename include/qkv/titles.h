// What people call items: a table of ids and titles, for showing items and for finding those that somebody names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace qkv {

// Titles are compared without case and the number of blanks; "Matrix, The (1999)" is also "The Matrix (1999)", and both
// also without the year. Immutable once made; methods may be called by many threads.
class Titles {
 public:
  using IsItem = std::function<bool(std::string_view)>;

  // No titles: items are named by their ids alone.
  explicit Titles(IsItem is_item) : is_item_(std::move(is_item)) {}

  // Reads a table with commas, semicolons, tabs or "::" between its columns, quoted as CSV is. `columns` are those of
  // id and title, as names of the first line or numbers from 1; if empty, the first one, and that with the name "title"
  // or "name", else the second. Throws Error, naming file and line.
  Titles(const std::string& path, const std::vector<std::string>& columns, IsItem is_item);

  // Of an item; "" where the table has none.
  const std::string& title(const std::string& item) const;

  // The items that a text can mean: the item with this id; else those with this title; of several those that is_item
  // knows, if it knows one. Empty: none.
  std::vector<std::string> find(std::string_view text) const;

  // Titles of items that are like the text, the most alike first.
  std::vector<std::string> near(std::string_view text, int64_t most = 3) const;

  // Cuts a list at commas, so that each part is found, where it can be, however many commas it has itself: from the
  // left the longest part that is found. What is not found goes up to the next part that is.
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

#include "analysis/heads/word_links.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "text/lines.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr int32_t kMostWords = 100'000;  // of a sentence

// Returns the places of the words between white space.
std::vector<WordPlace> places_of_words(std::string_view text) {
  std::vector<WordPlace> places;
  for (const std::string_view word : split_words(text)) {
    const auto begin = static_cast<size_t>(word.data() - text.data());
    places.push_back({begin, begin + word.size()});
  }
  return places;
}

// Returns a whole number below `end`, or nothing.
std::optional<int32_t> number_below(std::string_view text, int64_t end) {
  int32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0 || number >= end) return std::nullopt;
  return number;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t tab = line.find('\t', begin);
    fields.push_back(line.substr(begin, tab == line.npos ? line.npos : tab - begin));
    if (tab == line.npos) return fields;
    begin = tab + 1;
  }
}

// Finds words in a line from left to right.
class WordFinder {
 public:
  explicit WordFinder(std::string_view line) : line_(line) {}

  // Returns the place of the next word, which may have white space inside. Returns nothing if the line continues
  // otherwise.
  std::optional<WordPlace> next(std::string_view word) {
    size_t at = skip_space(line_, next_), in_word = 0;
    const size_t begin = at;
    while ((in_word = skip_space(word, in_word)) < word.size()) {
      at = skip_space(line_, at);
      if (at == line_.size() || line_[at] != word[in_word]) return std::nullopt;
      at++, in_word++;
    }
    next_ = at;
    return WordPlace{begin, at};
  }
  bool is_at_end() const { return skip_space(line_, next_) == line_.size(); }

 private:
  std::string_view line_;
  size_t next_ = 0;
};

// One sentence of a CoNLL-U file.
class Tree {
 public:
  Tree(const DataLine& line, const std::string& path) : finder_(line.text), number_(line.number), path_(path) {}

  void add(std::string_view row, int64_t row_number) {
    last_row_ = row_number;
    const std::vector<std::string_view> fields = fields_of(row);
    if (fields.size() != 10)
      fail("{}:{}: a word must have 10 fields separated by tabs (has {})", path_, row_number, fields.size());
    const std::string_view id = fields[0];
    if (id.find('.') != id.npos) return;  // an empty node
    if (const size_t dash = id.find('-'); dash != id.npos) return add_several(id, dash, fields[1], row_number);
    const auto own = number_below(id, kMostWords);
    if (!own || *own != std::ssize(links_.rows) + 1)
      fail("{}:{}: ID must be {} (is {})", path_, row_number, links_.rows.size() + 1, excerpt(id));
    links_.rows.push_back(*own <= several_end_ ? several_ : place_of(fields[1], row_number));
    if (fields[6] == "_") return;
    const auto head = number_below(fields[6], kMostWords);
    if (!head) fail("{}:{}: HEAD must be a number from 0 (is {})", path_, row_number, excerpt(fields[6]));
    if (*head == 0) return;
    const std::string_view relation = fields[7].substr(0, fields[7].find(':'));
    links_.links.push_back({std::string(relation), *own - 1, {*head - 1}});
  }

  WordLinks finish() {
    for (const WordLink& link : links_.links)
      if (link.to.front() >= std::ssize(links_.rows))
        fail("{}:{}: HEAD must be at most {}, the number of words (is {})", path_, last_row_, links_.rows.size(),
             link.to.front() + 1);
    if (several_end_ > std::ssize(links_.rows))
      fail("{}:{}: the sentence ends before word {} of a token of several words", path_, last_row_, several_end_);
    if (!finder_.is_at_end())
      fail("{}:{}: the sentence ends before line {} of the data does", path_, last_row_, number_);
    links_.columns = links_.rows;
    return std::move(links_);
  }

 private:
  // Takes a token of several words, such as "zum", whose words share its place.
  void add_several(std::string_view id, size_t dash, std::string_view form, int64_t row_number) {
    const auto first = number_below(id.substr(0, dash), kMostWords),
               end = number_below(id.substr(dash + 1), kMostWords);
    const int64_t next = std::ssize(links_.rows) + 1;
    if (!first || !end || *first != next || *first <= several_end_ || *end <= *first)
      fail("{}:{}: ID must be a range from {}, the next word, that overlaps no other (is {})", path_, row_number, next,
           excerpt(id));
    several_end_ = *end;
    several_ = place_of(form, row_number);
  }

  WordPlace place_of(std::string_view form, int64_t row_number) {
    const auto place = finder_.next(form);
    if (!place)
      fail("{}:{}: {} is not the next word of line {} of the data", path_, row_number, excerpt(form), number_);
    return *place;
  }

  WordFinder finder_;
  int64_t number_;
  const std::string& path_;
  WordLinks links_ = {};
  WordPlace several_ = {};
  int32_t several_end_ = 0;
  int64_t last_row_ = 0;
};

// Assigns the sentences of a file to the lines that are not blank.
class TreeReader {
 public:
  TreeReader(const std::vector<DataLine>& lines, const std::string& path) : lines_(lines), path_(path) {
    skip_blank_lines();
  }

  // Takes the next row of the file. Returns whether lines are left.
  bool add(const std::string& row) {
    number_++;
    if (row.empty()) end_sentence();
    if (trees_.size() == lines_.size()) return false;
    if (row.empty() || row.starts_with('#')) return true;
    if (!tree_) tree_.emplace(lines_[trees_.size()], path_);
    tree_->add(row, number_);
    return true;
  }

  // Returns the links of all lines.
  std::vector<WordLinks> finish() {
    end_sentence();
    if (trees_.size() != lines_.size())
      fail("{}: has no sentence for line {} of the data (has {})", path_, lines_[trees_.size()].number, sentences_);
    return std::move(trees_);
  }

 private:
  void end_sentence() {
    if (!tree_) return;
    trees_.push_back(tree_->finish());
    tree_.reset();
    sentences_++;
    skip_blank_lines();
  }
  void skip_blank_lines() {
    while (trees_.size() < lines_.size() && split_words(lines_[trees_.size()].text).empty()) trees_.emplace_back();
  }

  const std::vector<DataLine>& lines_;
  const std::string& path_;
  std::vector<WordLinks> trees_ = {};
  std::optional<Tree> tree_ = {};
  int64_t number_ = 0, sentences_ = 0;
};

}  // namespace

WordLinks read_alignment(const std::string& line, std::string_view source, std::string_view target,
                         const std::string& where) {
  WordLinks links{places_of_words(target), places_of_words(source), {}};
  std::map<int32_t, std::vector<int32_t>> of_target;
  for (const std::string_view pair : split_words(line)) {
    const size_t dash = pair.find('-');
    const auto i = number_below(pair.substr(0, dash), std::ssize(links.columns));
    const auto j = dash == pair.npos ? std::nullopt : number_below(pair.substr(dash + 1), std::ssize(links.rows));
    if (!i || !j)
      fail("{}: {} must be i-j with a source word i below {} and a target word j below {}", where, excerpt(pair),
           links.columns.size(), links.rows.size());
    std::vector<int32_t>& to = of_target[*j];
    if (std::ranges::find(to, *i) == to.end()) to.push_back(*i);
  }
  for (auto& [target_word, sources] : of_target) links.links.push_back({"alignment", target_word, std::move(sources)});
  return links;
}

std::vector<WordLinks> parse_trees(const std::vector<std::string>& text, const std::vector<DataLine>& lines,
                                   const std::string& path) {
  TreeReader reader(lines, path);
  for (const std::string& row : text)
    if (!reader.add(row)) break;
  return reader.finish();
}

std::vector<WordLinks> read_trees(const std::string& path, const std::vector<DataLine>& lines) {
  TreeReader reader(lines, path);
  visit_lines(path, [&](std::string&& row) { return reader.add(row); });
  return reader.finish();
}

}  // namespace qkv

#include "documents/strings/delimited_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "documents/strings/string_part.h"

namespace qkv {
namespace {

void append_quoted_cell(std::string_view text, std::string& to) {
  for (const char c : text) to.append(c == '"' ? 2 : 1, c);
}

void append_with_quotes(std::string_view text, std::string& to) {
  to += '"';
  append_quoted_cell(text, to);
  to += '"';
}

// The text of a part without tags comes as a whole, so that it is known here whether it needs quotes.

constexpr std::string_view kSeparators = ",;\t|", kCsvMarks = ",;\t|\"\r\n";

// Quotes a text with any separator, so that other programs find the same one.
void append_csv_cell(std::string_view text, std::string& to) {
  if (text.find_first_of(kCsvMarks) == text.npos && without_outer_space(text).size() == text.size())
    to += text;
  else
    append_with_quotes(text, to);
}

// Quotes no more than needed, as some programs read no quotes between tabs.
void append_tsv_cell(std::string_view text, std::string& to) {
  if (text.find_first_of("\t\r\n") == text.npos && !text.starts_with('"'))
    to += text;
  else
    append_with_quotes(text, to);
}

void append_cell_without_quotes(std::string_view text, std::string& to) {
  for (const char c : text) to += c == '\t' || c == '\r' || c == '\n' ? ' ' : c;
}

const TextSpelling kQuotedCellSpelling = {decode_nothing, append_quoted_cell};
const TextSpelling kCsvCellSpelling = {decode_nothing, append_csv_cell};
const TextSpelling kTsvCellSpelling = {decode_nothing, append_tsv_cell};
const TextSpelling kUnquotableCellSpelling = {decode_nothing, append_cell_without_quotes};

struct DelimitedCell {
  ByteRange bytes;  // quotes included
  bool is_quoted;
};

// Reads rows by hand: bytes must stay, and CSV libraries do not say where cells are.
class DelimitedReader {
 public:
  DelimitedReader(std::string_view text, char separator, bool has_quotes, size_t begin)
      : text_(text), separator_(separator), has_quotes_(has_quotes), at_(begin) {}

  // The fault of the quotes of the last row; "" if there is none.
  const std::string& problem() const { return problem_; }

  // Reads a row. Returns false at the end of the text, and where the quotes of a cell are wrong.
  bool next(std::vector<DelimitedCell>& cells) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    do {
      if (!cells.empty()) at_++;  // the separator
      if (!read_cell(cells)) return false;
    } while (at_ < text_.size() && text_[at_] == separator_);
    if (at_ < text_.size()) at_ += text_.substr(at_).starts_with("\r\n") ? 2 : 1;
    return true;
  }

 private:
  bool read_cell(std::vector<DelimitedCell>& cells) {
    const size_t begin = at_;
    const bool is_quoted = has_quotes_ && at_ < text_.size() && text_[at_] == '"';
    if (is_quoted && !skip_quoted()) return false;
    const auto ends_cell = [&](char c) { return c == separator_ || c == '\r' || c == '\n'; };
    if (is_quoted && at_ < text_.size() && !ends_cell(text_[at_])) {
      problem_ = fmt::format("line {}: a quoted cell must end with its quote (found {})", line_of(text_, at_),
                             excerpt(text_.substr(at_, 1)));
      return false;
    }
    while (at_ < text_.size() && !ends_cell(text_[at_])) at_++;
    cells.push_back({{begin, at_}, is_quoted});
    return true;
  }

  bool skip_quoted() {
    const size_t begin = at_++;
    while ((at_ = text_.find('"', at_)) != text_.npos) {
      if (!text_.substr(at_).starts_with("\"\"")) return ++at_ > 0;
      at_ += 2;
    }
    problem_ = fmt::format("line {}: the quoted cell is not closed", line_of(text_, begin));
    return false;
  }

  const std::string_view text_;
  const char separator_;
  const bool has_quotes_;
  size_t at_;
  std::string problem_;
};

// The columns that the options name.
class ChosenColumns {
 public:
  ChosenColumns(const std::vector<std::string>& columns, const std::vector<std::string>& names)
      : chosen_(names.size()) {
    for (const std::string& column : columns) {
      size_t number = 0;
      const char* end = column.data() + column.size();
      const auto [stop, error] = std::from_chars(column.data(), end, number);
      const bool is_number = stop == end && error == std::errc() && number > 0 && number <= names.size();
      if (is_number)
        chosen_[number - 1] = true;
      else
        choose_by_name(column, names);
    }
  }

  bool holds(size_t column) const { return chosen_.empty() || (column < chosen_.size() && chosen_[column]); }

 private:
  void choose_by_name(const std::string& column, const std::vector<std::string>& names) {
    constexpr size_t kListed = 30;
    bool is_found = false;
    for (size_t i = 0; i < names.size(); i++)
      if (names[i] == column) chosen_[i] = is_found = true;
    if (is_found) return;
    std::string known;
    for (const std::string& name : std::span(names).first(std::min(names.size(), kListed)))
      known += (known.empty() ? "" : ", ") + excerpt(name);
    if (names.size() > kListed) known += ", ...";
    fail("unknown column {} (columns: {}, or a number from 1 to {})", excerpt(column), known, names.size());
  }

  std::vector<bool> chosen_;  // empty: all columns
};

class DelimitedSplitter {
 public:
  // spelling: of cells without quotes; kUnquotableCellSpelling: quotes are ordinary characters.
  DelimitedSplitter(SplitText& document, char separator, const TextSpelling& spelling)
      : document_(document), separator_(separator), spelling_(spelling) {}

  // Returns what is wrong with the quotes of the text; "" if nothing is.
  std::string split(size_t begin, const std::vector<std::string>& columns) {
    DelimitedReader reader(document_.bytes, separator_, has_quotes(), begin);
    std::vector<DelimitedCell> cells;
    std::vector<std::string> names;
    bool is_open = reader.next(cells);
    for (const DelimitedCell& cell : cells) names.emplace_back(without_outer_space(value_of(cell)));
    if (!reader.problem().empty()) return reader.problem();
    const ChosenColumns chosen(columns, columns.empty() ? std::vector<std::string>() : names);
    if (is_open && !columns.empty()) is_open = reader.next(cells);
    for (; is_open; is_open = reader.next(cells))
      for (size_t i = 0; i < cells.size(); i++)
        if (chosen.holds(i)) add(cells[i]);
    return reader.problem();
  }

 private:
  std::string value_of(const DelimitedCell& cell) const {
    const std::string_view bytes = document_.slice(cell.bytes.begin, cell.bytes.end);
    if (!cell.is_quoted) return std::string(bytes);
    std::string value;
    for (size_t i = 1; i + 1 < bytes.size(); i += bytes[i] == '"' ? 2 : 1) value += bytes[i];
    return value;
  }

  void add(const DelimitedCell& cell) {
    const std::string value = value_of(cell);
    if (value.starts_with('=')) return;
    if (cell.is_quoted)
      add_string_part(document_, {cell.bytes.begin + 1, cell.bytes.end - 1}, value, kQuotedCellSpelling);
    else if (has_quotes() && without_outer_space(value).size() < value.size())
      add_string_part(document_, cell.bytes, value, kQuotedCellSpelling, "\"");
    else
      add_string_part(document_, cell.bytes, value, spelling_);
  }

  bool has_quotes() const { return &spelling_ != &kUnquotableCellSpelling; }

  SplitText& document_;
  const char separator_;
  const TextSpelling& spelling_;
};

size_t mark_size(std::string_view text) { return text.starts_with("\uFEFF") ? 3 : 0; }

// Returns the separator that stands most often in the first row outside of quotes; a comma if there is none.
char find_separator(std::string_view text) {
  size_t counts[kSeparators.size()] = {};
  bool is_quoted = false, begins_cell = true;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (is_quoted) {
      const bool is_doubled = text.substr(i).starts_with("\"\"");
      is_quoted = is_doubled || c != '"';
      i += is_doubled ? 1 : 0;
      continue;
    }
    if (c == '\r' || c == '\n') break;
    const size_t separator = kSeparators.find(c);
    is_quoted = begins_cell && c == '"';
    begins_cell = separator != kSeparators.npos;
    if (begins_cell) counts[separator]++;
  }
  return kSeparators[static_cast<size_t>(std::ranges::max_element(counts) - counts)];
}

// Throws Error if a cell without quotes has a quote after a separator in the first row: find_separator would take it
// for the beginning of a cell, and could find another separator as soon as a text in the row changes.
void check_first_row(std::string_view text, char separator) {
  std::vector<DelimitedCell> cells;
  DelimitedReader(text, separator, true, 0).next(cells);
  for (const DelimitedCell& cell : cells) {
    if (cell.is_quoted) continue;
    const std::string_view bytes = text.substr(cell.bytes.begin, cell.bytes.end - cell.bytes.begin);
    for (size_t i = 1; i < bytes.size(); i++)
      if (bytes[i] == '"' && kSeparators.find(bytes[i - 1]) != kSeparators.npos)
        fail(
            "the separator is not known: in the first row a quote follows {} (expected quotes around the cell {}, or a "
            "first line that names the separator, such as sep=,)",
            bytes[i - 1] == '\t' ? "a tab" : excerpt(bytes.substr(i - 1, 1)), excerpt(bytes));
  }
}

// Takes a row such as "sep=;" from the beginning of a text, and returns its separator.
std::optional<char> take_separator_row(std::string_view& text) {
  constexpr std::string_view kBegin = "sep=";
  if (!text.starts_with(kBegin) || text.size() == kBegin.size()) return std::nullopt;
  const char separator = text[kBegin.size()];
  const std::string_view rest = text.substr(kBegin.size() + 1);
  if (kSeparators.find(separator) == kSeparators.npos || !(rest.starts_with('\r') || rest.starts_with('\n')))
    return std::nullopt;
  text = rest.substr(rest.starts_with("\r\n") ? 2 : 1);
  return separator;
}

}  // namespace

SplitText split_csv(std::string text, const DocumentOptions& options) {
  SplitText document{.bytes = std::move(text)};
  std::string_view rest = document.bytes;
  rest.remove_prefix(mark_size(rest));
  const std::optional<char> named = take_separator_row(rest);
  const char separator = named ? *named : find_separator(rest);
  if (!named) check_first_row(rest, separator);
  const size_t begin = document.bytes.size() - rest.size();
  const std::string problem = DelimitedSplitter(document, separator, kCsvCellSpelling).split(begin, options.columns);
  if (!problem.empty()) fail("{}", problem);
  return document;
}

SplitText split_tsv(std::string text, const DocumentOptions& options) {
  SplitText document{.bytes = std::move(text)};
  const size_t begin = mark_size(document.bytes);
  if (DelimitedSplitter(document, '\t', kTsvCellSpelling).split(begin, options.columns).empty()) return document;
  document.parts.clear();
  DelimitedSplitter(document, '\t', kUnquotableCellSpelling).split(begin, options.columns);
  return document;
}

}  // namespace qkv

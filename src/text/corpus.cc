#include "text/corpus.h"

#include <algorithm>

#include "core/fail.h"
#include "qkv/text.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// The lines of a file without a byte-order mark at its start.
std::vector<std::string> read_plain(const std::string& path) {
  std::vector<std::string> lines = read_lines(path);
  if (!lines.empty() && lines[0].starts_with("\uFEFF")) lines[0].erase(0, 3);
  return lines;
}

ParallelText read_tab_separated(const std::string& path) {
  ParallelText text;
  for (const std::string& line : read_plain(path)) {
    const auto tabs = std::count(line.begin(), line.end(), '\t');
    if (tabs != 1) fail("{}:{}: {} tabs, wanted one (source TAB target)", path, text.size() + 1, tabs);
    const size_t tab = line.find('\t');
    text.source.push_back(line.substr(0, tab));
    text.target.push_back(line.substr(tab + 1));
  }
  return text;
}

ParallelText read_pair(const std::string& source, const std::string& target) {
  ParallelText text{read_plain(source), read_plain(target)};
  const size_t rows = text.source.size(), target_rows = text.target.size();
  if (rows != target_rows)
    fail("{}:{}: the file ends here, wanted {} lines as in {}", rows < target_rows ? source : target,
         std::min(rows, target_rows) + 1, std::max(rows, target_rows), rows < target_rows ? target : source);
  return text;
}

}  // namespace

ParallelText read_parallel(const std::vector<std::string>& files, bool lower_case) {
  if (files.empty() || files.size() > 2)
    fail("parallel text: {} files, wanted two (source and target) or one (source TAB target)", files.size());
  ParallelText text = files.size() == 1 ? read_tab_separated(files[0]) : read_pair(files[0], files[1]);
  if (lower_case)
    for (auto* side : {&text.source, &text.target})
      for (std::string& line : *side) line = lowercase(line);
  return text;
}

}  // namespace qkv

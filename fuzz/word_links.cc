// Word alignments and syntax trees. The first line is the text that a tree belongs to, or both sides of an alignment.
#include "analysis/heads/word_links.h"

#include <algorithm>

#include "fuzz/reader.h"
#include "qkv/text.h"

namespace {

using qkv::fuzz::require;

void check_links(const qkv::WordLinks& links, std::string_view rows, std::string_view columns) {
  for (const qkv::WordPlace& place : links.rows)
    require(place.begin <= place.end && place.end <= rows.size(), "words are in their text");
  for (const qkv::WordPlace& place : links.columns)
    require(place.begin <= place.end && place.end <= columns.size(), "words are in their text");
  for (const qkv::WordLink& link : links.links) {
    require(link.from >= 0 && std::cmp_less(link.from, links.rows.size()), "a link is that of a word");
    require(!link.to.empty(), "a link has an end");
    for (const int32_t to : link.to)
      require(to >= 0 && std::cmp_less(to, links.columns.size()), "a link ends at a word");
  }
}

}  // namespace

void qkv::fuzz::fuzz_word_links(std::string_view bytes) {
  std::vector<std::string> lines;
  attempt([&] { lines = read_lines(MemoryFile(bytes).path()); });
  if (lines.empty()) return;
  const std::string text = lines.front();
  lines.erase(lines.begin());
  attempt([&] {
    for (const WordLinks& links : parse_trees(lines, {DataLine{text}}, "trees")) check_links(links, text, text);
  });
  for (const std::string& line : lines)
    attempt([&] { check_links(read_alignment(line, text, text, "alignment"), text, text); });
}

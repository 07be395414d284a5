// True links between words, from files: word alignments of pairs in Pharaoh format, and syntax trees in CoNLL-U.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The word `from` of one text belongs to the words `to`, of the same text or of its translation. Words count from 0.
struct WordLink {
  std::string relation;
  int32_t from = 0;
  std::vector<int32_t> to;
};

// A word's bytes of its text.
struct WordPlace {
  size_t begin = 0, end = 0;
};

struct WordLinks {
  std::vector<WordPlace> rows, columns;  // the words on both sides of the links; for a tree both are its words
  std::vector<WordLink> links;
};

// Reads pairs "i-j" of source word i and target word j, which stand between spaces. Returns the links from target
// words, named "alignment". Throws Error, beginning with `where`, for a line that is not valid.
WordLinks read_alignment(const std::string& line, std::string_view source, std::string_view target,
                         const std::string& where);

// A line of the data, counted from 1.
struct DataLine {
  std::string text = "";
  int64_t number = 1;
};

// Reads the trees of a file in CoNLL-U, its basic dependencies: a sentence for each line that is not blank, which has
// no links; reads no further. The words must stand in the lines in the same order; white space does not matter. A link
// goes from the dependent to its head and is named as the relation without its subtype: "nsubj". Throws Error, naming
// file and line.
std::vector<WordLinks> read_trees(const std::string& path, const std::vector<DataLine>& lines);
// The same for the text of a file, which `path` names in errors.
std::vector<WordLinks> parse_trees(const std::vector<std::string>& text, const std::vector<DataLine>& lines,
                                   const std::string& path);

}  // namespace qkv

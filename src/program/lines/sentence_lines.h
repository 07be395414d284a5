// The work of `qkv data sentences` and `qkv data abbreviations`.
#pragma once

#include <string>
#include <vector>

#include "qkv/jobs.h"

namespace qkv {

// Writes the sentences of each line of the files ("-" is standard input), a line each, and an empty line after those of
// each line, as lines arrive. `abbreviations`: a file of abbreviations in addition to the built-in ones; "": none.
// Throws Error, naming the file, if one cannot be read.
void split_lines(const std::vector<std::string>& files, const std::string& abbreviations, const LineOutput& output);

// Writes the abbreviations that are found in the lines of all files, one per line. Throws as above.
void learn_abbreviations(const std::vector<std::string>& files, const LineOutput& output);

}  // namespace qkv

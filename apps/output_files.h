// Files that a command writes, and those that it must not write over.
#pragma once

#include <string>
#include <vector>

// A file and the option that names it. An empty path: not given.
struct FileOption {
  std::string option, path;
};

// Throws qkv::Error if two of the outputs are the same file, or standard output twice, or one is the file of an input.
// An input - is standard input.
void require_different_files(const std::vector<FileOption>& inputs, const std::vector<FileOption>& outputs);

// Replaces a file, or writes to standard output if the path is -. Throws as write_text_file and print_out do.
void write_output(const std::string& path, const std::string& text);
// The same for text without an end of line, which standard output gets.
void write_result(const std::string& path, const std::string& text);

#include "output_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "commands.h"
#include "qkv/error.h"

namespace {

// Returns the path of what a name leads to; of what does not exist, the path at which it would be.
std::filesystem::path place_of_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute : canonical;
}

bool are_same_file(const FileOption& a, const FileOption& b) {
  if (a.path.empty() || b.path.empty()) return false;
  return a.path == b.path || place_of_file(a.path) == place_of_file(b.path);
}

}  // namespace

void require_different_files(const std::vector<FileOption>& inputs, const std::vector<FileOption>& outputs) {
  for (size_t i = 0; i < outputs.size(); i++) {
    for (size_t j = i + 1; j < outputs.size(); j++)
      if (are_same_file(outputs[i], outputs[j]))
        throw qkv::Error(fmt::format("{} and {}: both are {}, expected different files", outputs[i].option,
                                     outputs[j].option, outputs[i].path));
    for (const FileOption& input : inputs)
      if (input.path != "-" && are_same_file(input, outputs[i]))
        throw qkv::Error(fmt::format("{}: {} is the input of {}, expected another file", outputs[i].option,
                                     outputs[i].path, input.option));
  }
}

void write_output(const std::string& path, const std::string& text) {
  if (path == "-")
    print_out(text);
  else
    write_text_file(path, text);
}

void write_result(const std::string& path, const std::string& text) {
  write_output(path, path == "-" ? text + "\n" : text);
}

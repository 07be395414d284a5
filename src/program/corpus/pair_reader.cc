#include "program/corpus/pair_reader.h"

#include <fcntl.h>

#include <filesystem>

#include "core/fail.h"
#include "core/system/file_descriptor.h"
#include "text/decompress.h"

namespace qkv {
namespace {

bool read(LineReader& reader, std::string& line) { return reader.next(line, true) == Next::line; }

// Reads up to the end, and returns the number of lines.
int64_t count_lines(LineReader& reader) {
  for (std::string line; read(reader, line);) continue;
  return reader.lines();
}

}  // namespace

PairReader::PairReader(const std::vector<std::string>& files) {
  if (files.empty() || files.size() > 2)
    fail("corpus: must be two line-aligned files or one with tabs (is {} files)", files.size());
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) fail("{}: does not exist", file);
    if (!std::filesystem::is_regular_file(file, error))
      fail("{}: must be a regular file, because it is read twice", file);
    if (const FileDescriptor bytes = open_file(file, O_RDONLY))
      if (const Compression compression = compression_of(bytes, file); compression != Compression::none)
        fail("{}: is compressed, which the check of a text does not read; unpack it with {}", file,
             unpacker_of(compression));
    readers_.push_back(std::make_unique<LineReader>(file));
  }
}

bool PairReader::next(RawPair& pair) {
  const bool found = read(*readers_[0], pair.source);
  pair.line = readers_[0]->lines();
  if (readers_.size() == 1) {
    if (!found) return false;
    const size_t tab = pair.source.find('\t');
    pair.has_tab = tab != pair.source.npos && pair.source.find('\t', tab + 1) == pair.source.npos;
    pair.target = pair.has_tab ? pair.source.substr(tab + 1) : "";
    if (pair.has_tab) pair.source.resize(tab);
    return true;
  }
  pair.has_tab = true;
  if (found != read(*readers_[1], pair.target)) {
    const int64_t source = count_lines(*readers_[0]), target = count_lines(*readers_[1]);
    fail("{} and {}: have {} and {} lines; both must have the same number", readers_[0]->name(), readers_[1]->name(),
         source, target);
  }
  return found;
}

}  // namespace qkv

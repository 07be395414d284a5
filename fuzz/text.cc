// Text files: two readers find the same lines, and what is accepted is valid UTF-8 by rules of our own.
#include "qkv/text.h"

#include "fuzz/import.h"
#include "text/line_file.h"
#include "text/parallel_corpus.h"
#include "text/unicode.h"

namespace {

// Table 3-7 of the Unicode Standard, byte by byte.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
    const auto within = [&](size_t k, unsigned low, unsigned high) { return byte(k) >= low && byte(k) <= high; };
    const unsigned lead = byte(0);
    if (lead < 0x80) {
      i += 1;
    } else if (lead >= 0xC2 && lead <= 0xDF && within(1, 0x80, 0xBF)) {
      i += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF && within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) &&
               within(2, 0x80, 0xBF)) {
      i += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4 && within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) &&
               within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF)) {
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

std::vector<std::string> all_lines(const qkv::LineFile& file) {
  std::vector<std::string> all;
  for (int64_t chunk = 0; chunk < file.chunks(); chunk++)
    for (std::string& line : file.read(chunk)) all.push_back(std::move(line));
  return all;
}

}  // namespace

void qkv::fuzz::fuzz_text(std::string_view bytes) {
  static const SourceDirectory fixed("unused", {{"target", "eins\nzwei\n"}});
  const MemoryFile file(bytes);
  require((find_invalid_utf8(bytes) == std::string_view::npos) == is_utf8(bytes), "UTF-8 is what Unicode says");
  attempt([&] {
    const ParallelCorpus corpus({file.path()}, true, 3);
    const ParallelText text = corpus.sample(corpus.size());
    require(text.size() == corpus.size(), "every pair is read");
  });
  for (const std::string& target : {file.path(), fixed.path() + "/target"})
    attempt([&] {
      const ParallelCorpus corpus({file.path(), target}, true, 3);
      require(std::ssize(corpus.sample(corpus.size())) == corpus.size(), "every pair is read");
    });
  const std::vector<std::string> lines = read_lines(file.path());
  std::vector<std::string> again = all_lines(LineFile(file.path(), 2));
  if (!again.empty() && bytes.starts_with("\uFEFF")) again[0].insert(0, "\uFEFF");
  require(lines == again, "both readers find the same lines");
  for (const std::string& line : lines) {
    require(is_utf8(lowercase(line)), "lower case is valid UTF-8");
    split_words(line);
  }
}

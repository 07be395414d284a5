// Lines of text in, vectors out.
#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "qkv/line_jobs.h"
#include "qkv/result_json.h"

namespace qkv {
namespace {

// The header of a file in NumPy's format. Its length does not depend on the number of lines.
std::string npy_header(int64_t lines, int64_t width) {
  constexpr size_t kBytes = 128, kLength = kBytes - 10;  // a multiple of 64; the first ten bytes are binary
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", lines, width);
  text.resize(kLength - 1, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(kLength) + '\0' + text + '\n';
}

void write_vector(const std::string& text, std::span<const float> vector, VectorForm form, const LineOutput& output) {
  if (form == VectorForm::npy)
    output.write({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
  else
    output.write(form == VectorForm::json ? embedding_to_json(text, vector) + "\n"
                                          : fmt::format("{}\n", fmt::join(vector, " ")));
}

}  // namespace

void embed_lines(const Embedder& embedder, LineReader& lines, EmbedOptions options, VectorForm form,
                 const LineOutput& output) {
  if (form == VectorForm::npy) output.write(npy_header(0, embedder.width()));
  const size_t width = to_size(embedder.width());
  int64_t cut = 0;
  std::vector<std::string> window;
  for (bool more = true; more;) {
    options.first_number = lines.lines() + 1;
    more = read_window(lines, window);
    const Embeddings found = embedder.embed(window, options);
    cut += found.cut;
    for (size_t i = 0; i < window.size(); i++)
      write_vector(window[i], std::span(found.values).subspan(i * width, width), form, output);
    output.progress(std::ssize(window));
  }
  if (form == VectorForm::npy) output.overwrite(npy_header(lines.lines(), embedder.width()));
  if (cut > 0)
    output.note(fmt::format("{} of {} lines were truncated to {} tokens", cut, lines.lines(),
                            options.max_length.value_or(embedder.max_length())));
}

}  // namespace qkv

#include "program/lines/sentence_lines.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "io/consistent_read.h"
#include "io/runs/run_config.h"
#include "io/runs/tokenizer_files.h"
#include "program/lines/jobs.h"
#include "text/abbreviations.h"
#include "text/sentences.h"

namespace qkv {
namespace {

// Calls f(line) for all lines of all files.
template <class F>
void for_each_line(const std::vector<std::string>& files, const LineOutput& output, F f) {
  std::vector<std::string> window;
  for (const std::string& file : files) {
    LineReader lines(file, [&] { output.progress(0); });
    for (bool more = true; more;) {
      more = read_window(lines, window);
      for (const std::string& line : window) f(line);
      output.progress(std::ssize(window));
    }
  }
}

std::vector<std::string> abbreviations_of(const RunDirectory& run) {
  expect_kind(run, read_config(run).kind, {RunKind::translator});
  return read_abbreviations(run);
}

}  // namespace

void split_lines(const std::vector<std::string>& files, const std::string& run, const std::string& abbreviations,
                 const LineOutput& output) {
  std::vector<std::string> words;
  if (!run.empty()) words = read_consistently(run, [&] { return abbreviations_of(RunDirectory(run)); });
  if (!abbreviations.empty()) std::ranges::copy(read_abbreviations(abbreviations), std::back_inserter(words));
  const SentenceSplitter splitter(words);
  std::string text;
  for_each_line(files, output, [&](const std::string& line) {
    text.clear();
    for (const std::string_view sentence : splitter.split(line)) text.append(sentence).append("\n");
    output.write(text.append("\n"));
  });
}

void learn_abbreviations(const std::vector<std::string>& files, const LineOutput& output) {
  AbbreviationCounter counter;
  for_each_line(files, output, [&](const std::string& line) { counter.add(line); });
  for (const std::string& word : counter.abbreviations()) output.write(word + "\n");
}

}  // namespace qkv

// Translates lines of standard input with a run directory, and shows what each word was read from: translate RUN
#include <iostream>
#include <string>
#include <vector>

#include "qkv/qkv.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: translate RUN < lines\n";
    return 2;
  }
  try {
    const qkv::Translator translator(argv[1]);
    std::vector<std::string> lines;
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
    qkv::TranslateOptions options;
    options.beam = 4;
    options.n_best = 2;
    options.alignment = true;
    for (const qkv::Translation& found : translator.translate(lines, options)) {
      std::cout << found.source << "\n";
      for (const qkv::Hypothesis& hypothesis : found.hypotheses)
        std::cout << "  " << hypothesis.score << "  " << hypothesis.text << "\n";
      for (const qkv::Alignment& pair : found.hypotheses.front().alignment)
        std::cout << "    " << found.hypotheses.front().tokens[pair.target] << " <- "
                  << found.source_tokens[pair.source] << "\n";
    }
  } catch (const qkv::Error& error) {
    std::cerr << "translate: " << error.what() << "\n";
    return 1;
  }
}

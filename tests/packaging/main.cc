// A program that links qkv: one score, one error, one line of output.
#include <iostream>

#include "qkv/qkv.h"

int main() {
  const double score = qkv::bleu({"the cat sat on the mat"}, {"the cat sat on the mat"}).score;
  try {
    const qkv::Translator translator("/nonexistent");
  } catch (const qkv::Error& error) {
    std::cout << qkv::version() << ": " << score << ", " << error.what() << "\n";
    return score > 99.9 ? 0 : 1;
  }
  return 1;
}

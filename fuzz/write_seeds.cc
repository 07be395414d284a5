// fuzz_seeds DIRECTORY: writes the seeds of every target to DIRECTORY/TARGET.
#include <iostream>

#include "fuzz/seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return std::cerr << "usage: fuzz_seeds DIRECTORY\n", 2;
  qkv::fuzz::write_seeds(arguments[1]);
}

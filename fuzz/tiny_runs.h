// Runs of all kinds that a server answers with, as small as they can be.
#pragma once

#include <string>
#include <vector>

namespace qkv::fuzz {

// Writes a translator "mt", a language model "lm", a recommender "rec" and an encoder "enc" into a directory. Returns
// them as NAME=RUN.
std::vector<std::string> make_tiny_runs(const std::string& directory);

// Writes a language model with the tokens of every template of a conversation.
void make_tiny_chat(const std::string& run);

}  // namespace qkv::fuzz

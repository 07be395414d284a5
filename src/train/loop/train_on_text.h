// Training on files of plain text, by one process or several.
#pragma once

#include <string>
#include <vector>

#include "qkv/training.h"
#include "train/loop/session.h"

namespace qkv {

// Calls train_on for each rank. Data: as there. files: with the members text and dev.
template <class Data, class Recipe, class Files>
bool train_on_text(const Files& files, const Recipe& recipe, const std::string& out, const TrainingObserver& observer,
                   const RankOptions& ranks) {
  std::vector<std::string> texts = files.text;
  texts.insert(texts.end(), files.dev.begin(), files.dev.end());
  return train_on_ranks(ranks, out, observer, texts,
                        [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
                          return train_on<Data>(run, own, all, recipe, files);
                        });
}

}  // namespace qkv

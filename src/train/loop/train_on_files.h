// Training on files of plain text or of rows of texts, by one process or several.
#pragma once

#include <string>
#include <vector>

#include "qkv/training.h"
#include "train/loop/session.h"

namespace qkv {

// Calls train_on for each rank. Data: as there. paths: those of all training data.
template <class Data, class Recipe, class Files>
bool train_on_files(const std::vector<std::string>& paths, const Files& files, const Recipe& recipe,
                    const std::string& out, const TrainingObserver& observer, const RankOptions& ranks) {
  return train_on_ranks(ranks, out, observer, paths,
                        [&](const std::string& run, const TrainingObserver& own, Ranks* all) {
                          return train_on<Data>(run, own, all, recipe, files);
                        });
}

// The same for plain text. files: with the lists `text` and `dev`.
template <class Data, class Recipe, class Files>
bool train_on_text(const Files& files, const Recipe& recipe, const std::string& out, const TrainingObserver& observer,
                   const RankOptions& ranks) {
  std::vector<std::string> paths = files.text;
  paths.insert(paths.end(), files.dev.begin(), files.dev.end());
  return train_on_files<Data>(paths, files, recipe, out, observer, ranks);
}

// The same for rows of texts, which the CPU alone trains on. files: with the paths `train` and `dev`, which may be "".
template <class Data, class Recipe, class Files>
bool train_on_rows(const Files& files, Recipe recipe, const std::string& out, const TrainingObserver& observer,
                   const RankOptions& ranks) {
  if (recipe.training.device == ComputeDevice::automatic) recipe.training.device = ComputeDevice::cpu;
  std::vector<std::string> paths = {files.train};
  if (!files.dev.empty()) paths.push_back(files.dev);
  return train_on_files<Data>(paths, files, recipe, out, observer, ranks);
}

}  // namespace qkv

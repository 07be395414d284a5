// Runs of all kinds: one way to create a run directory and one way to load it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "io/consistent_read.h"
#include "io/runs/adapter.h"
#include "io/runs/run_config.h"
#include "io/runs/run_kinds.h"
#include "io/runs/text_head_file.h"
#include "io/weights/weights.h"

namespace qkv {

// Only a recommender has inputs of items.
template <class Run>
ItemInputs items_of(const Run& parts) {
  if constexpr (Run::kKind == RunKind::recommender) return parts.items;
  return {};
}

template <class Run>
Run read_parts(const RunDirectory& run, const RunConfig& config) {
  if constexpr (Run::kKind == RunKind::recommender)
    return Run::read(run, config.model, config.items);
  else
    return Run::read(run, config.model);
}

// Creates the run directory of `parts`, whole or not at all, with the files that `write_more` adds: weights, or what
// training needs. The directory must not exist.
template <class Run>
void create_run(const RunDirectory& run, const Run& parts, const std::function<void(const RunDirectory&)>& write_more) {
  write_directory_atomic(run.root(), [&](const std::string& path) {
    const RunDirectory partial(path);
    write_config(partial, Run::kKind, parts.config, items_of(parts));
    parts.write(partial);
    write_more(partial);
  });
}

// Reads a run of this kind without its weights, which it lacks before the first evaluation. Throws Error, naming the
// file, or the kind of a run of another kind.
template <class Run>
Run read_run(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  expect_kind(run, config.kind, {Run::kKind});
  return read_parts<Run>(run, config);
}

template <class... Runs>
std::variant<Runs...> load_once(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  expect_kind(run, config.kind, {Runs::kKind...});
  std::optional<std::variant<Runs...>> loaded;
  const auto load = [&]<class Run>(std::in_place_type_t<Run> type) {
    if (config.kind != Run::kKind) return;
    loaded.emplace(type, read_parts<Run>(run, config));
    std::get<Run>(*loaded).model = load_run_model(run, config.model, config.items);
    if constexpr (requires { expect_own_head(run, std::get<Run>(*loaded)); })
      expect_own_head(run, std::get<Run>(*loaded));
  };
  (load(std::in_place_type<Runs>), ...);
  return std::move(*loaded);
}

// Loads a run of any of these kinds with its weights, whole even if it is replaced meanwhile. Nothing in the directory
// is trusted. Throws Error like read_run.
template <class... Runs>
std::variant<Runs...> load_one_of(const std::string& directory) {
  return read_consistently(directory, [&] { return load_once<Runs...>(RunDirectory(directory)); });
}

template <class Run>
Run load_run(const std::string& directory) {
  return std::get<Run>(load_one_of<Run>(directory));
}

}  // namespace qkv

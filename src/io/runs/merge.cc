// qkv::merge_run: an adapter and its base as one run.
#include "qkv/merge.h"

#include <filesystem>

#include "core/fail.h"
#include "io/runs/adapter.h"
#include "io/runs/run.h"

namespace qkv {

MergeReport merge_run(const std::string& run, const std::string& out) {
  const RunDirectory from(run), to(out);
  if (std::filesystem::exists(std::filesystem::symlink_status(to.root()))) fail("{}: already exists", to.root());
  read_config(from);
  if (!has_adapter(from)) fail("{}: is not an adapter of another run (it has no base.json)", from.root());
  const Adapter adapter = read_adapter(from);
  const auto loaded = load_one_of<TranslatorRun, LanguageRun>(run);
  return std::visit(
      [&](const auto& parts) -> MergeReport {
        const ParameterList<float>& weights = parts.model->parameters();
        create_run(to, parts,
                   [&](const RunDirectory& partial) { save_weights(partial.model(), weights, weights.values()); });
        return {adapter.base, std::ssize(adapter.modules), weights.size()};
      },
      loaded);
}

}  // namespace qkv

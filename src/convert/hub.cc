#include "convert/hub.h"

#include <algorithm>

#include "convert/architecture.h"
#include "convert/hub/snapshot.h"
#include "convert/hub_files.h"
#include "convert/model_files.h"

namespace qkv {
namespace {

// Throws the Error that import would throw for config.json after the download.
void check_config(const ModelFiles& files) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  read_config(architecture_of(settings), settings);
}

}  // namespace

HubModel fetch_from_hub(const std::string& source, const OnDownload& on_download) {
  const HubName name = parse_hub_name(source);
  HubSnapshot snapshot(name, read_hub_settings(), on_download);
  HubModel model{snapshot.folder(), snapshot.commit()};
  const ModelFiles files = ModelFiles::of_directory(model.path);
  HubFiles chosen =
      name.file.empty() ? choose_files(snapshot.files(), snapshot.source()) : files_with(name.file, snapshot.files());
  for (size_t i = 0; i < chosen.names.size(); i++) {
    const std::string file = chosen.names[i];
    const std::string path = snapshot.fetch(file);
    if (file == "config.json" && chosen.layout == HubLayout::transformers) check_config(files);
    if (chosen.layout == HubLayout::file || chosen.layout == HubLayout::marian) model.path = path;
    if (!names_files(file)) continue;
    for (std::string& other : files_named_in(file, files.open_small(file)->text(), snapshot.files(), path))
      if (std::ranges::find(chosen.names, other) == chosen.names.end()) chosen.names.push_back(std::move(other));
  }
  snapshot.finish();
  return model;
}

}  // namespace qkv

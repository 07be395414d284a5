// Models of the Hugging Face hub: downloads the files that import reads.
#pragma once

#include <string>

#include "convert/hub/client.h"

namespace qkv {

struct HubModel {
  std::string path;    // of the directory or file to import
  std::string commit;  // of the repository
};

// Downloads the model that `source` names (convert/hub/name.h), unless the cache has it. A class of transformers that
// is not supported is refused before its weights are downloaded. `on_download` may be empty. Throws Error, naming the
// repository, what was found and what to do.
HubModel fetch_from_hub(const std::string& source, const OnDownload& on_download);

}  // namespace qkv

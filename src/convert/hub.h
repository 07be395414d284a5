// Models of the Hugging Face hub: chooses the files of a repository that import reads, and downloads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/hub/client.h"

namespace qkv {

enum class HubLayout {
  transformers,  // a directory whose config.json describes a class of transformers
  directory,     // another directory
  marian,        // an archive of Marian, with its settings and vocabularies
  file           // one file that holds everything
};

struct HubFiles {
  HubLayout layout = HubLayout::transformers;
  std::vector<std::string> names = {};  // in the order of the download: the weights come last
};

// Returns the files that are needed of those that a repository has. Throws Error, beginning with `source`, if none has
// weights that can be read.
HubFiles choose_files(const std::vector<std::string>& files, const std::string& source);

// Returns the files that are needed with one that the user has named: the settings and vocabularies of an archive of
// Marian. The named file comes last.
HubFiles files_with(const std::string& file, const std::vector<std::string>& files);

// Returns the names of all files that are read. A `*` at the start stands for any text without /.
std::vector<std::string> hub_patterns();

// Returns whether a file names others that are needed: the index of weights in several files, and modules.json.
bool names_files(std::string_view file);

// Returns these others, given the text of the file and the sorted list of all files. Throws Error, beginning with
// `where`, if the text is not valid or names weights that the repository lacks.
std::vector<std::string> files_named_in(std::string_view file, std::string_view text,
                                        const std::vector<std::string>& files, const std::string& where);

struct HubModel {
  std::string path;    // of the directory or file to import
  std::string commit;  // of the repository
};

// Downloads the model that `source` names (convert/hub/repository.h), unless the cache has it. A class of transformers
// that is not supported is refused before its weights are downloaded. `on_download` may be empty. Throws Error, naming
// the repository, what was found and what to do.
HubModel fetch_from_hub(const std::string& source, const OnDownload& on_download);

}  // namespace qkv

// Answers of the Hugging Face hub: the description of a repository, the files that name others, an ETag and a name.
#include "convert/hub.h"

#include <algorithm>

#include "convert/hub/cache.h"
#include "convert/hub/repository.h"
#include "fuzz/reader.h"

namespace {

using namespace qkv;

void check_names(const std::vector<std::string>& names, const std::vector<std::string>& files) {
  for (const std::string& name : names) {
    fuzz::require(is_safe_path(name), "names of files stay in their directory");
    fuzz::require(std::ranges::binary_search(files, name), "files that are needed are in the repository");
  }
}

}  // namespace

void qkv::fuzz::fuzz_hub(std::string_view bytes) {
  const std::vector<std::string> all = {"1_Pooling/config.json", "a.safetensors", "b.safetensors"};
  attempt([&] {
    const HubRepository repository = parse_repository(bytes, "description");
    require(is_commit(repository.commit), "a commit is the name of a directory");
    check_names(repository.files, repository.files);
    check_names(choose_files(repository.files, "hf:a/b").names, repository.files);
  });
  for (const char* file : {"modules.json", "model.safetensors.index.json"})
    attempt([&] { check_names(files_named_in(file, bytes, all, file), all); });
  attempt([&] {
    const HubName name = parse_hub_name("hf:" + std::string(bytes));
    require(is_safe_path(name.repository) && is_safe_path(name.revision), "names stay in the cache");
    require(name.file.empty() || is_safe_path(name.file), "files stay in the cache");
  });
  if (const auto etag = clean_etag(bytes)) require(is_safe_path(*etag), "an ETag is the name of a file");
}

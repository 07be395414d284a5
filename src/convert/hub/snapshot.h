// The files of a repository of the Hugging Face hub at one commit. They are downloaded when they are asked for.
#pragma once

#include <string>
#include <vector>

#include "convert/hub/cache.h"
#include "convert/hub/client.h"
#include "convert/hub/repository.h"

namespace qkv {

class HubSnapshot {
 public:
  // Asks the hub for the commit and the list of files; offline, the cache. Throws Error, naming the repository, what
  // was found and what to do, if there is none.
  HubSnapshot(const HubName& name, const HubSettings& settings, OnDownload on_download);

  const std::string& commit() const { return repository_.commit; }
  const std::vector<std::string>& files() const { return repository_.files; }  // sorted
  const std::string& source() const { return client_.source(); }               // "hf:OWNER/NAME", for errors

  // Returns the path of a file after its download, unless the cache has it. Throws Error if it is missing, if its size
  // or checksum is wrong, or if it cannot be written.
  std::string fetch(const std::string& file);
  std::string folder() const { return cache_.snapshot(commit()); }
  // Records in the cache that the revision is this commit, after all files are there.
  void finish() const { cache_.set_commit(name_.revision, commit()); }

 private:
  HubRepository ask_hub();
  HubRepository ask_cache() const;

  HubName name_;
  bool offline_;
  HubClient client_;
  HubCache cache_;
  HubRepository repository_;
};

}  // namespace qkv

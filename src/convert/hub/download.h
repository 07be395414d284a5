// Download of one file of a repository into the cache: what it is, its bytes, and their checksum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convert/hub/client.h"

namespace qkv {

// The properties of a file that the hub states before it is downloaded.
struct HubFile {
  std::string name;             // path in the repository
  std::string url;              // of its contents at a commit
  std::string etag;             // the name of its blob in the cache
  std::optional<int64_t> size;  // in bytes
};

// Throws Error if the file is missing, or if access is denied.
HubFile ask_for_file(HubClient& client, const std::string& commit, const std::string& name);

// Downloads the contents to the path `blob`, or continues with BLOB.incomplete. Only contents with the right size and
// checksum get the name `blob`. Throws Error if these are wrong, if the download breaks off too often, or if the disk
// is full.
void download(HubClient& client, const HubFile& file, const std::string& blob);

}  // namespace qkv

// Zip archives made in memory, for the tests of formats that are archives.
#pragma once

#include <zip.h>

#include <string>
#include <utility>
#include <vector>

namespace qkv::testing {

// Members with their names. The first one is stored, as the mimetype of OpenDocument and EPUB files is.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members) {
  zip_source_t* source = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(source);
  zip_t* zip = zip_open_from_source(source, ZIP_TRUNCATE, nullptr);
  for (const auto& [name, bytes] : members) {
    const auto i = zip_file_add(zip, name.c_str(), zip_source_buffer(zip, bytes.data(), bytes.size(), 0), 0);
    if (i == 0) zip_set_file_compression(zip, 0, ZIP_CM_STORE, 0);
  }
  zip_close(zip);
  zip_source_open(source);
  zip_source_seek(source, 0, SEEK_END);
  std::string bytes(static_cast<size_t>(zip_source_tell(source)), '\0');
  zip_source_seek(source, 0, SEEK_SET);
  zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  zip_source_free(source);
  return bytes;
}

}  // namespace qkv::testing

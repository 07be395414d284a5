#include "convert/hub/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "convert/hub/download.h"
#include "core/fail.h"
#include "core/json.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

constexpr size_t kMaxDescription = size_t{16} << 20;  // bytes

}  // namespace

HubSnapshot::HubSnapshot(const HubName& name, const HubSettings& settings, OnDownload on_download)
    : name_(name),
      offline_(settings.offline),
      client_(name, settings, std::move(on_download)),
      cache_(settings.cache, name.repository),
      repository_(offline_ ? ask_cache() : ask_hub()) {}

HubRepository HubSnapshot::ask_hub() {
  for (int attempt = 1;; attempt++) {
    std::string text;
    const HttpResponse response =
        client_.send({.url = client_.description_url()}, [&](const HttpResponse&, std::string_view part) {
          if (part.size() > kMaxDescription - text.size())
            fail("{}: the list of files must have at most 16 MiB", source());
          text += part;
        });
    if (response.ok()) return parse_repository(text, source() + ": description by the hub");
    client_.wait_or_fail(response, attempt, "");
  }
}

HubRepository HubSnapshot::ask_cache() const {
  const std::optional<std::string> commit = cache_.commit_of(name_.revision);
  std::error_code error;
  if (!commit || !std::filesystem::is_directory(cache_.snapshot(*commit), error))
    fail("{}: revision {} is not in the cache, and HF_HUB_OFFLINE is set", source(), excerpt(name_.revision));
  return {*commit, cache_.files(*commit)};
}

std::string HubSnapshot::fetch(const std::string& file) {
  const std::string path = cache_.file(commit(), file);
  if (is_file(path)) return path;
  if (offline_) fail("{}: is not in the cache, and HF_HUB_OFFLINE is set", client_.name_of(file));
  if (!std::ranges::binary_search(files(), file))
    fail("{}: has no file {} at revision {}", source(), excerpt(file), excerpt(name_.revision));
  client_.progress() = {.file = file};
  const HubFile properties = ask_for_file(client_, commit(), file);
  const std::string blob = cache_.blob(properties.etag);
  make_directory(std::filesystem::path(blob).parent_path().string());
  if (!is_file(blob)) {
    const FileDescriptor lock = cache_.lock(properties.etag, [&] { client_.report(); });
    if (!is_file(blob)) download(client_, properties, blob);
  }
  cache_.link(commit(), file, properties.etag);
  return path;
}

}  // namespace qkv

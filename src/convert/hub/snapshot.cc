#include "convert/hub/snapshot.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "convert/hub/cache.h"
#include "core/fail.h"
#include "core/json.h"
#include "io/atomic_file.h"

namespace qkv {
namespace {

// Download of one file of a repository into the cache: what it is, its bytes, and their checksum.

// The properties of a file that the hub states before it is downloaded.
struct HubFile {
  std::string name;             // path in the repository
  std::string url;              // of its contents at a commit
  std::string etag;             // the name of its blob in the cache
  std::optional<int64_t> size;  // in bytes
};

// Returns the number that a text is, or nothing.
std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Writes the parts of one answer after the bytes that were there before.
class Receiver {
 public:
  Receiver(HubClient& client, const HubFile& file, IncompleteBlob& blob)
      : client_(client), file_(file), blob_(blob), begin_(blob.size()) {}

  void take(const HttpResponse& head, std::string_view part) {
    if (std::exchange(first_, false)) check(head);
    if (file_.size && static_cast<int64_t>(part.size()) > *file_.size - blob_.size())
      fail("{}: must have {} bytes (the server sends more)", client_.name_of(file_.name), *file_.size);
    blob_.write(part);
    client_.progress().received = blob_.size();
  }

 private:
  void check(const HttpResponse& head) {
    const std::string& range = head.header("content-range");
    if (head.status == 200 && begin_ > 0) blob_.restart();  // the server ignores ranges
    if (head.status == 206 && !range.starts_with(fmt::format("bytes {}-", begin_)))
      fail("{}: the server must send the bytes from {} on (sends {})", client_.name_of(file_.name), begin_,
           excerpt(range));
  }

  HubClient& client_;
  const HubFile& file_;
  IncompleteBlob& blob_;
  int64_t begin_;
  bool first_ = true;
};

// Receives the missing bytes, in as many attempts as it takes, as long as each receives some.
void receive(HubClient& client, const HubFile& file, IncompleteBlob& blob) {
  if (file.size && blob.size() > *file.size) blob.restart();
  const int64_t start = blob.size();
  for (int attempt = 1; !file.size || blob.size() < *file.size; attempt++) {
    const int64_t begin = client.progress().received = blob.size();
    Receiver receiver(client, file, blob);
    HttpResponse response =
        client.send({.url = file.url, .begin = begin},
                    [&](const HttpResponse& head, std::string_view part) { receiver.take(head, part); });
    if (response.ok() && (!file.size || blob.size() == *file.size)) return;
    if (blob.size() > begin) attempt = 1;
    using Failure = HttpResponse::Failure;
    if (response.ok() || response.status == 416) {
      response.reason = fmt::format("the server ended after {} bytes (status {})", blob.size(), response.status);
      if (response.status == 416) blob.restart();  // more bytes than the file has
      response.failure = Failure::interrupted;
    } else if (response.failure == Failure::unreachable && blob.size() > start) {
      response.failure = Failure::interrupted;  // the network failed during the download
    }
    client.wait_or_fail(response, attempt, file.name);
  }
}

// Throws Error if the file is missing, or if access is denied.
HubFile ask_for_file(HubClient& client, const std::string& commit, const std::string& name) {
  const std::string url = client.file_url(commit, name);
  for (int attempt = 1;; attempt++) {
    const HttpResponse response = client.send({.url = url, .head = true}, [](const HttpResponse&, std::string_view) {});
    const bool redirected = response.failure == HttpResponse::Failure::none && !response.location.empty();
    if (!response.ok() && !redirected) {
      client.wait_or_fail(response, attempt, name);
      continue;
    }
    const std::string& linked = response.header("x-linked-etag");
    const std::string& found = linked.empty() ? response.header("etag") : linked;
    const std::optional<std::string> etag = clean_etag(found);
    if (!etag) fail("{}: must have an ETag that names its contents (is {})", client.name_of(name), excerpt(found));
    std::optional<int64_t> size = number_of(response.header("x-linked-size"));
    if (!size && !redirected) size = number_of(response.header("content-length"));
    return {name, url, *etag, size};
  }
}

// Downloads the contents to the path `blob`, or continues with BLOB.incomplete. Only contents with the right size and
// checksum get the name `blob`. Throws Error if these are wrong, if the download breaks off too often, or if the disk
// is full.
void download(HubClient& client, const HubFile& file, const std::string& path) {
  client.progress().size = file.size.value_or(0);
  IncompleteBlob blob(path);
  for (bool resumed = blob.size() > 0;; resumed = false) {
    receive(client, file, blob);
    const std::string found = blob.checksum_like(file.etag, [&] { client.report(); });
    if (found == file.etag) break;
    if (!resumed) {
      blob.remove();
      fail("{}: must have the checksum {} (has {}); what was received is deleted, so try again",
           client.name_of(file.name), file.etag, found);
    }
    blob.restart();  // what an earlier download left was wrong
  }
  blob.commit();
  client.progress().complete = true;
  client.report();
}

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

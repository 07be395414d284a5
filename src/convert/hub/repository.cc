#include "convert/hub/repository.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr size_t kMaxName = 96, kMaxRevision = 200, kMaxPath = 1024, kMaxComponent = 200;  // in bytes

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// The rules of the hub. "--" separates the parts of a directory's name in the cache.
bool is_repository_part(std::string_view part) {
  const auto word = [](char c) { return is_letter_or_digit(c) || c == '_'; };
  return !part.empty() && part.size() <= kMaxName && word(part.front()) && word(part.back()) &&
         std::ranges::all_of(part, [&](char c) { return word(c) || c == '.' || c == '-'; }) &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos &&
         !part.ends_with(".git");
}

bool is_revision(std::string_view text) {
  return text.size() <= kMaxRevision && is_safe_path(text) && std::ranges::all_of(text, [](char c) {
           return is_letter_or_digit(c) || std::string_view("._-+/").find(c) != std::string_view::npos;
         });
}

using nlohmann::json;

// Returns a text member of an object, or "".
std::string member_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

bool is_hub_name(std::string_view source) { return source.starts_with(kPrefix); }

HubName parse_hub_name(std::string_view source) {
  const auto refuse = [&](const char* part, std::string_view found) {
    fail("{}: {} is not valid (is {}): expected hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/FILE",
         excerpt(source), part, excerpt(found));
  };
  HubName name;
  std::string_view rest = source.substr(kPrefix.size());
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    name.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!is_revision(name.revision)) refuse("the revision", name.revision);
  }
  const size_t slash = rest.find('/');
  const size_t end = slash == std::string_view::npos ? slash : rest.find('/', slash + 1);
  name.repository = rest.substr(0, end);
  if (end != std::string_view::npos) {
    name.file = rest.substr(end + 1);
    if (!is_safe_path(name.file)) refuse("the file", name.file);
  }
  const std::string_view repository = name.repository;
  const std::string_view owner = slash == std::string_view::npos ? "" : repository.substr(0, slash);
  const std::string_view last = slash == std::string_view::npos ? repository : repository.substr(slash + 1);
  if (slash != std::string_view::npos && !is_repository_part(owner)) refuse("the owner", owner);
  if (!is_repository_part(last)) refuse("the name", last);
  return name;
}

bool is_safe_path(std::string_view path) {
  if (path.size() > kMaxPath) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == ".." || component.size() > kMaxComponent) return false;
    begin = end + 1;
  }
  return true;
}

bool is_commit(std::string_view text) {
  return text.size() == 40 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string percent_encode(std::string_view text, std::string_view kept) {
  std::string encoded;
  for (const char c : text) {
    if (is_letter_or_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos ||
        kept.find(c) != std::string_view::npos)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

HubRepository parse_repository(std::string_view text, const std::string& where) {
  const json description = parse_json(text, where);
  HubRepository repository{member_of(description, "sha"), {}};
  if (!is_commit(repository.commit))
    fail("{}: sha must be a commit of 40 hexadecimal digits (is {})", where, excerpt(repository.commit));
  const auto siblings = description.find("siblings");
  if (siblings == description.end() || !siblings->is_array()) fail("{}: siblings must be an array", where);
  for (const json& sibling : *siblings) {
    std::string name = member_of(sibling, "rfilename");
    if (!is_safe_path(name)) fail("{}: rfilename must be a path in the repository (is {})", where, excerpt(name));
    repository.files.push_back(std::move(name));
  }
  std::ranges::sort(repository.files);
  if (const auto twice = std::ranges::adjacent_find(repository.files); twice != repository.files.end())
    fail("{}: {} is listed twice", where, excerpt(*twice));
  return repository;
}

}  // namespace qkv

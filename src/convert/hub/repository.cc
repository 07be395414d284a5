#include "convert/hub/repository.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/hub/name.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

// Returns a text member of an object, or "".
std::string member_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

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

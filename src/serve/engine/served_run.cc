#include "serve/engine/served_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

// Splits NAME=VALUE; the name is "" without one.
std::pair<std::string, std::string> split_name(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string last_part(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void check_name(const std::string& name) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  };
  if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_allowed))
    fail("{}: a name must have 1 to 64 letters, digits, dots, underscores or hyphens; give one as NAME=RUN",
         excerpt(name));
}

// Sets a member of the run that each NAME=VALUE names. Without a name it is the only run.
void set_values(std::vector<ServedRun>& runs, const std::vector<std::string>& values, const char* option,
                std::string ServedRun::*member) {
  for (const std::string& text : values) {
    const auto [name, value] = split_name(text);
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&name = name](const ServedRun& r) { return r.name == name; });
    if (run == runs.end() && !(name.empty() && runs.size() == 1))
      fail("{}: {} must be NAME=VALUE with the name of a run", option, excerpt(text));
    (run == runs.end() ? runs.front() : *run).*member = value;
  }
}

void add(std::vector<ServedRun>& runs, ServedRun run) {
  check_name(run.name);
  for (const ServedRun& other : runs)
    if (other.name == run.name) fail("the name {} stands for two models", run.name);
  runs.push_back(std::move(run));
}

// Returns the translator of NAME or NAME:LANGUAGES.
ChainMember chain_member(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return {text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

// Adds the chain of NAME=FIRST,SECOND,…: names of runs, or NAME:LANGUAGES.
void add_chain(std::vector<ServedRun>& runs, const std::string& text) {
  const auto [name, list] = split_name(text);
  ServedRun chain{"", name};
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    chain.chain.push_back(chain_member(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (name.empty() || chain.chain.size() < 2)
    fail("pivot: {} must be NAME=FIRST,SECOND with the names of two or more runs", excerpt(text));
  for (const ChainMember& member : chain.chain) {
    const auto run = std::ranges::find(runs, member.name, &ServedRun::name);
    if (run == runs.end() || !run->chain.empty())
      fail("pivot: {} must be NAME=FIRST,SECOND with the names of runs ({} is none)", excerpt(text),
           excerpt(member.name));
  }
  add(runs, std::move(chain));
}

// Throws Error for a value that only a run has.
void check_chain(const ServedRun& chain) {
  for (const auto& [option, value] : {std::pair{"titles", &chain.titles}, std::pair{"glossary", &chain.glossary},
                                      std::pair{"chat_template", &chain.chat_template}})
    if (!value->empty()) fail("{}: {} is a chain, which has none; its runs may have one", option, chain.name);
}

}  // namespace

std::vector<ServedRun> served_runs(const ServerOptions& options) {
  if (options.runs.empty()) fail("runs: at least one run must be given");
  std::vector<ServedRun> runs;
  for (const std::string& text : options.runs) {
    auto [name, directory] = split_name(text);
    if (name.empty()) name = last_part(directory);
    add(runs, {std::move(directory), std::move(name)});
  }
  for (const std::string& text : options.pivot) add_chain(runs, text);
  set_values(runs, options.languages, "languages", &ServedRun::languages);
  set_values(runs, options.titles, "titles", &ServedRun::titles);
  set_values(runs, options.glossary, "glossary", &ServedRun::glossary);
  set_values(runs, options.chat_template, "chat_template", &ServedRun::chat_template);
  for (const ServedRun& run : runs)
    if (!run.chain.empty()) check_chain(run);
  return runs;
}

}  // namespace qkv

#include "io/runs/run_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "core/system/file_descriptor.h"
#include "core/to_size.h"

namespace qkv {
namespace {

std::string_view with_article(RunKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"a translator", "a language model", "a recommender", "an encoder",
                                                      "a classifier"};
  return kNames[to_size(kind)];
}

std::string_view command_of(RunKind kind) {
  constexpr std::array<std::string_view, 5> kCommands = {"translate", "generate", "recommend", "embed", "classify"};
  return kCommands[to_size(kind)];
}

// The first fields of config.json. Every future format must keep `format` and `version`, so that its runs are rejected
// with a clear error.
struct Header {
  int64_t format = 0;
  std::string version, kind;

  Header(const std::string& text, const std::string& where) {
    FieldReader reader(text, where);
    reader("format", format);
    reader("version", version);
    if (format <= kRunFormat) reader("kind", kind);
  }
  std::string writer() const { return fmt::format(" (run written by qkv {})", version); }
};

void check_format(const Header& header, const std::string& where) {
  if (header.format == 0) fail("{}: format is missing", where);
  if (header.format < 0) fail("{}: format must be at least 1 (is {})", where, header.format);
  if (header.format > kRunFormat)
    fail("{}: format {} was written by qkv {}; qkv {} reads formats up to {}", where, header.format,
         header.version.empty() ? "of an unknown version" : header.version, QKV_VERSION, kRunFormat);
}

}  // namespace

RunConfig parse_run_config(const std::string& text, const std::string& where) {
  const Header header(text, where);
  check_format(header, where);
  if (header.kind.empty()) fail("{}: kind is missing", where);
  RunConfig config;
  try {
    fields_from_json(config, text, where, Missing::kept);
  } catch (const Error& error) {
    fail("{}{}", error.what(), header.writer());
  }
  try {
    check(config.model, config.items);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
  if (config.kind != RunKind::recommender && config.items != ItemInputs())
    fail("{}: item_features and gap_buckets must be 0 in {} (are {} and {})", where, with_article(config.kind),
         config.items.features, config.items.gap_buckets);
  return config;
}

RunConfig read_config(const RunDirectory& run) {
  std::error_code error;
  if (!std::filesystem::is_directory(run.root(), error)) fail("{}: is not a run directory", run.root());
  return parse_run_config(read_file(run.config(), kMaxConfigBytes), run.config());
}

void write_config(const RunDirectory& run, RunKind kind, const ModelConfig& model, const ItemInputs& items) {
  write_fields(run.config(), RunConfig{kRunFormat, kind, QKV_VERSION, model, items});
}

void expect_kind(const RunDirectory& run, RunKind found, std::initializer_list<RunKind> accepted) {
  if (std::ranges::find(accepted, found) != accepted.end()) return;
  std::string names;
  for (size_t i = 0; i < accepted.size(); i++)
    names += fmt::format("{}{}",
                         i == 0                    ? ""
                         : i + 1 < accepted.size() ? ", "
                                                   : " or ",
                         with_article(accepted.begin()[i]));
  fail("{} is {}; expected {} (try: qkv {})", run.root(), with_article(found), names, command_of(found));
}

std::string writer_of(const RunDirectory& run) {
  try {
    return Header(read_file(run.config(), kMaxConfigBytes), run.config()).writer();
  } catch (const Error&) {
    return "";
  }
}

}  // namespace qkv

// config.json of a run directory, and the rules by which every JSON file of a run is read and written.
// docs/run-directory.md states the rules.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/fail.h"
#include "core/fields.h"
#include "core/system/file_descriptor.h"
#include "io/atomic_file.h"
#include "io/runs/run_directory.h"
#include "qkv/config.h"
#include "qkv/runs.h"

namespace qkv {

constexpr int64_t kRunFormat = 1;  // the format that is written, and the newest that is read

struct RunConfig {
  int64_t format = 0;  // from 1 on
  RunKind kind = RunKind::translator;
  std::string version;  // version of qkv that wrote the run
  ModelConfig model;
  ItemInputs items;  // of a recommender
};

// Calls visit(name, member, help) for every field of config.json, in its order.
template <class Visitor>
void visit_fields(RunConfig& c, Visitor&& visit) {
  visit("format", c.format, "format of the run directory");
  visit("kind", c.kind, "kind of the run");
  visit("version", c.version, "version of qkv that wrote the run");
  visit_fields(c.model, c.items, visit);
}

// Parses config.json and checks the model. Throws Error, beginning with `where`: a missing or newer format, an unknown
// or invalid field, a missing kind, a model that check() rejects.
RunConfig parse_run_config(const std::string& text, const std::string& where);

RunConfig read_config(const RunDirectory& run);
void write_config(const RunDirectory& run, RunKind kind, const ModelConfig& model, const ItemInputs& items = {});

// Throws Error, naming the kind found and the kinds accepted.
void expect_kind(const RunDirectory& run, RunKind found, std::initializer_list<RunKind> accepted);

// " (run written by qkv VERSION)" from config.json, for errors about the other files; "" if it cannot be read.
std::string writer_of(const RunDirectory& run);

// Reads one JSON file of a run. A field that is missing takes its default. Throws Error, naming file and field, for
// unknown fields and invalid values.
template <class Options>
Options read_fields(const RunDirectory& run, const std::string& path) {
  const std::string text = read_file(path, kMaxConfigBytes);
  Options options;
  try {
    fields_from_json(options, text, path, Missing::kept);
  } catch (const Error& error) {
    fail("{}{}", error.what(), writer_of(run));
  }
  return options;
}

template <class Options>
void write_fields(const std::string& path, const Options& options) {
  write_file_atomic(path, json_from_fields(options));
}

}  // namespace qkv

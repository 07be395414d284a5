#include "ranks/launcher.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "core/fail.h"
#include "core/system/plugin.h"

namespace qkv {
namespace {

constexpr int kMostRanks = 4096;

// The number of ranks, by plugin: of qkv_local, Open MPI, MPICH and Intel MPI, SLURM.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"QKV_LOCAL_SIZE", "local"}, {"OMPI_COMM_WORLD_SIZE", "mpi"}, {"PMI_SIZE", "mpi"}, {"SLURM_STEP_NUM_TASKS", "mpi"}};

int parse_ranks(const char* name, std::string_view text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > kMostRanks)
    fail("{} must be a number of ranks between 1 and {} (is \"{}\")", name, kMostRanks, text);
  return ranks;
}

}  // namespace

Launch find_launch(FunctionRef<const char*(const char*)> get) {
  for (const auto& [name, kind] : kVariables)
    if (const char* text = get(name))
      if (const int ranks = parse_ranks(name, text); ranks > 1) return {kind, name, ranks};
  return {};
}

std::string transport_path(const std::string& kind) { return plugin_path(kind, "QKV_TRANSPORT"); }

const qkv_transport& load_transport(const std::string& path) {
  constexpr const char* kFunction = "qkv_transport_1";
  // Older versions of Open MPI load parts of themselves that refer to its symbols.
  const auto& t = load_plugin<qkv_transport>(path, kFunction, "transport plugin", PluginSymbols::global);
  if (!t.name || !t.open || !t.send || !t.receive || !t.poll || !t.error || !t.lost || !t.abort || !t.close)
    fail("{}: {} returns a table with missing functions; expected those of qkv/transport.h", path, kFunction);
  return t;
}

}  // namespace qkv

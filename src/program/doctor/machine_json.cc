// The report on the machine as JSON.
#include <nlohmann/json.hpp>

#include "qkv/doctor.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

// Returns null for an unknown number.
ordered_json known(int64_t value, int64_t unknown = 0) {
  return value == unknown ? ordered_json() : ordered_json(value);
}
ordered_json known(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json libraries(const MachineReport& m) {
  ordered_json json = ordered_json::object();
  for (const LibraryVersion& library : m.libraries) json[library.name] = known(library.version);
  return json;
}

ordered_json disks(const MachineReport& m) {
  ordered_json json = ordered_json::array();
  for (const DiskSpace& disk : m.disks)
    json.push_back({{"name", disk.name}, {"path", known(disk.path)}, {"free_bytes", known(disk.free_bytes, -1)}});
  return json;
}

ordered_json plugins(const MachineReport& m) {
  ordered_json json = ordered_json::array();
  for (const PluginState& plugin : m.plugins)
    json.push_back({{"name", plugin.name},
                    {"path", plugin.path},
                    {"installed", plugin.installed},
                    {"error", known(plugin.error)}});
  return json;
}

}  // namespace

std::string to_json(const MachineReport& m) {
  const ordered_json json = {{"version", m.version},
                             {"system", known(m.system)},
                             {"processor",
                              {{"name", known(m.processor)},
                               {"instruction_sets", m.instruction_sets},
                               {"instruction_set", m.instruction_set},
                               {"vnni", m.vnni},
                               {"amx", m.amx},
                               {"bfloat16_products", m.bfloat16_products}}},
                             {"threads",
                              {{"cores", known(m.cores)},
                               {"processors", known(m.processors)},
                               {"allowed", known(m.allowed)},
                               {"quota", known(m.quota)},
                               {"used", m.threads},
                               {"OMP_NUM_THREADS", known(m.omp_num_threads)},
                               {"QKV_ISA", known(m.forced_instruction_set)}}},
                             {"memory",
                              {{"total_bytes", known(m.memory)},
                               {"available_bytes", known(m.available_memory)},
                               {"limit_bytes", known(m.memory_limit)},
                               {"huge_pages", known(m.huge_pages)}}},
                             {"libraries", libraries(m)},
                             {"disks", disks(m)},
                             {"plugins", plugins(m)},
                             {"advice", advice_for(m)}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace qkv

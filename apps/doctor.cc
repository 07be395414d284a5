// qkv doctor: the machine as qkv sees it, and advice.
#include "program/doctor/doctor.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "commands.h"

namespace {

std::string known(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string size(int64_t bytes) { return bytes < 0 ? "unknown" : fmt::format("{:.1f} GiB", mebibytes(bytes) / 1024); }

void print_line(const std::string& name, const std::string& text) {
  print_out(name.empty() ? fmt::format("{:20}{}\n", "", text) : fmt::format("{:20}{}\n", name + ":", text));
}

void print_processor(const qkv::MachineReport& m) {
  print_line("processor", known(m.processor));
  std::string sets = fmt::format("{} (available: {})", m.instruction_set, fmt::join(m.instruction_sets, ", "));
  if (m.vnni) sets += ", VNNI";
  if (m.amx) sets += ", AMX";
  if (m.bfloat16_products) sets += ", bfloat16 products";
  print_line("instruction set", sets);
  std::string count = fmt::format("{} (cores: {}, allowed by affinity: {}", m.processors, m.cores, m.allowed);
  if (m.quota > 0) count += fmt::format(", quota of the control group: {}", m.quota);
  print_line("processors", count + ")");
  const std::string variable = m.omp_num_threads.empty() ? "" : fmt::format(" (OMP_NUM_THREADS={})", m.omp_num_threads);
  print_line("threads", fmt::format("{}{}", m.threads, variable));
}

void print_memory(const qkv::MachineReport& m) {
  std::string memory = fmt::format("{}, available: {}", size(m.memory), size(m.available_memory));
  if (m.memory_limit > 0) memory += fmt::format(", limit of the control group: {}", size(m.memory_limit));
  print_line("memory", memory);
  print_line("huge pages", known(m.huge_pages));
  for (const qkv::DiskSpace& disk : m.disks)
    print_line(disk.name, fmt::format("{} free ({})", size(disk.free_bytes), known(disk.path)));
}

void print_software(const qkv::MachineReport& m) {
  std::vector<std::string> libraries;
  for (const qkv::LibraryVersion& library : m.libraries)
    libraries.push_back(library.name + " " + (library.version.empty() ? "(not installed)" : library.version));
  print_line("libraries", fmt::format("{}", fmt::join(libraries, ", ")));
  for (const qkv::PluginState& plugin : m.plugins) {
    const char* const state = !plugin.installed ? "not installed" : plugin.error.empty() ? "found" : "cannot be used";
    print_line(fmt::format("plugin {}", plugin.name), fmt::format("{} ({})", state, plugin.path));
    for (const qkv::DeviceState& device : plugin.devices)
      print_line("device", fmt::format("{}, {} ({})", device.name, size(device.bytes), plugin.uses));
  }
}

void print_text(const qkv::MachineReport& m) {
  print_line("qkv", m.version);
  print_line("system", known(m.system));
  print_processor(m);
  print_memory(m);
  print_software(m);
  const std::vector<std::string> advice = qkv::advice_for(m);
  print_out(advice.empty() ? "\nNo advice: all is well.\n" : "\nAdvice:\n");
  for (const std::string& line : advice) print_out("- " + line + "\n");
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "Show what qkv finds on this machine, with advice");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([json] {
    const qkv::MachineReport machine = qkv::examine_machine();
    *json ? print_out(qkv::to_json(machine) + "\n") : print_text(machine);
  });
}

// The machine as qkv sees it, and advice on settings that cost speed or stop work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

struct LibraryVersion {
  std::string name, version;
};

struct DiskSpace {
  std::string name, path;   // "current folder", "model cache"
  int64_t free_bytes = -1;  // for this user; −1: unknown
};

// A device that a plugin finds.
struct DeviceState {
  std::string name;
  int64_t bytes = 0;  // of its memory
};

// A plugin: a transport, for training by several processes, or that of devices.
struct PluginState {
  std::string name, path;  // "mpi", "local" or "cuda"
  bool installed = false;
  std::string error = {};  // why a plugin that is installed, or that QKV_DEVICE names, cannot be used; "" if it can
  std::string uses = {};   // what a device plugin uses, such as "CUDA 13.0, driver 580.95"
  std::vector<DeviceState> devices = {};
};

// Byte counts and processor counts of 0 are unknown, except where stated otherwise.
struct MachineReport {
  std::string version;                                        // of qkv
  std::string system;                                         // kernel and architecture, such as "Linux 6.1.0 x86_64"
  std::string processor;                                      // model name; "" if unknown
  std::vector<std::string> instruction_sets;                  // that qkv can use here, best first
  std::string instruction_set;                                // that qkv uses
  bool vnni = false, amx = false, bfloat16_products = false;  // instructions that kernels use

  int cores = 0;                                        // of the machine, without hyper-threads
  int processors = 0;                                   // of the machine, with hyper-threads
  int allowed = 0;                                      // by the affinity mask
  int quota = 0;                                        // by the quota of the control group, rounded up; 0: no quota
  int threads = 0;                                      // that qkv uses by default
  std::string omp_num_threads, forced_instruction_set;  // OMP_NUM_THREADS and QKV_ISA; "" if not set

  int64_t memory = 0, available_memory = 0;  // bytes
  int64_t memory_limit = 0;                  // bytes, of the control group; 0: no limit
  std::string huge_pages;                    // transparent huge pages: "always", "madvise" or "never"; "" if unknown

  std::vector<LibraryVersion> libraries;
  std::vector<DiskSpace> disks;
  std::vector<PluginState> plugins;
};

// Examines the machine, and leaves unknown whatever it cannot find out. Throws Error only if QKV_ISA names an
// instruction set that the machine lacks.
MachineReport examine_machine();

// Returns version and instruction set, and the devices if their plugin is installed, in one line each.
std::string version_text();

// Returns one sentence for each setting that costs speed or will stop work; none if all is well.
std::vector<std::string> advice_for(const MachineReport& machine);

// Returns the report and the advice as one JSON object.
std::string to_json(const MachineReport& machine);

}  // namespace qkv

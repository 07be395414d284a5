// Figures of the machine in the files of /proc and /sys. Files that are absent or invalid give "unknown".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace qkv {

// Returns the model name in the text of /proc/cpuinfo; "" if there is none, as on most Arm systems.
std::string processor_name(std::string_view cpuinfo);

// Returns the bytes of a line "NAME: N kB" in the text of /proc/meminfo; 0 without the line.
int64_t memory_figure(std::string_view meminfo, std::string_view name);

// Returns the chosen word of a text such as "always [madvise] never"; "" if there is none.
std::string chosen_word(std::string_view text);

// Returns the number of cores below a directory such as /sys/devices/system/cpu; 0 if unknown.
int count_cores(const std::filesystem::path& cpus);

}  // namespace qkv

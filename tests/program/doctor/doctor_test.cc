#include "program/doctor/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "program/doctor/system_files.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

constexpr const char* kInfo =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Fast (R) CPU\n\nmodel name\t: B\n";

TEST(SystemFiles, ProcessorNameIsThatOfTheFirstProcessor) {
  EXPECT_EQ(processor_name(kInfo), "Fast (R) CPU");
  EXPECT_EQ(processor_name("processor: 0\nBogoMIPS: 2\n"), "");
  EXPECT_EQ(processor_name(""), "");
}

TEST(SystemFiles, MemoryFiguresAreBytes) {
  EXPECT_EQ(memory_figure("MemTotal:       2048 kB\nMemFree: 1 kB\n", "MemFree"), 1024);
  for (const char* text :
       {"", "MemFree", "MemFree:", "MemFree: x", "MemFree: -5 kB", "MemFree: 9223372036854775807 kB"})
    EXPECT_EQ(memory_figure(text, "MemFree"), 0) << text;
}

TEST(SystemFiles, TheChosenWordIsInBrackets) {
  EXPECT_EQ(chosen_word("always [madvise] never\n"), "madvise");
  for (const char* text : {"", "always never", "[always", "always]"}) EXPECT_EQ(chosen_word(text), "") << text;
}

TEST(SystemFiles, HyperThreadsShareACore) {
  testing::TempDir root;
  for (const char* cpu : {"cpu0", "cpu1", "cpu2", "cpu3"}) {
    const std::filesystem::path topology = std::filesystem::path(root.path()) / cpu / "topology";
    std::filesystem::create_directories(topology);
    testing::spill(topology / "thread_siblings_list", std::string(cpu) < "cpu2" ? "0-1\n" : "2-3\n");
  }
  EXPECT_EQ(count_cores(root.path()), 2);
  EXPECT_EQ(count_cores(root / "absent"), 0);
}

// A machine without anything to advise.
MachineReport good_machine() {
  MachineReport m;
  m.instruction_sets = {"avx512", "avx2", "portable"};
  m.instruction_set = "avx512";
  m.cores = 4, m.processors = 8, m.allowed = 8, m.threads = 8;
  m.memory = int64_t{16} << 30, m.available_memory = int64_t{8} << 30;
  m.huge_pages = "madvise";
  m.libraries = {{"libcurl", "7.88.1"}};
  m.disks = {{"current folder", "/data", int64_t{100} << 30}};
  m.plugins = {{"mpi", "/usr/lib/libqkv_mpi.so", false, ""}};
  return m;
}

std::string only_advice(const MachineReport& machine) {
  const std::vector<std::string> advice = advice_for(machine);
  EXPECT_EQ(advice.size(), 1u);
  return advice.empty() ? "" : advice.front();
}

TEST(Advice, IsEmptyForAGoodMachine) { EXPECT_TRUE(advice_for(good_machine()).empty()); }

TEST(Advice, NamesVariablesThatSlowDown) {
  MachineReport m = good_machine();
  m.omp_num_threads = "1", m.threads = 1;
  EXPECT_EQ(only_advice(m),
            "OMP_NUM_THREADS=1 is set: training uses 1 thread of 8 usable processors; unset it, or pass --threads");
  m.omp_num_threads = "16", m.threads = 16;
  EXPECT_EQ(only_advice(m),
            "OMP_NUM_THREADS=16 is set, but only 8 processors are usable: more threads than processors are slower");
  m = good_machine();
  m.instruction_set = m.forced_instruction_set = "avx2";
  EXPECT_EQ(only_advice(m), "QKV_ISA=avx2 is set: unset it to use avx512, which is faster");
}

TEST(Advice, NamesLimitsOfTheProcess) {
  MachineReport m = good_machine();
  m.allowed = m.threads = 2;
  EXPECT_NE(only_advice(m).find("allows 2 of 8 processors"), std::string::npos);
  m = good_machine();
  m.quota = m.threads = 3;
  EXPECT_NE(only_advice(m).find("allows the time of 3 of 8 processors"), std::string::npos);
  m = good_machine();
  m.memory_limit = int64_t{2} << 30;
  EXPECT_NE(only_advice(m).find("allows 2.0 GiB of 16.0 GiB"), std::string::npos);
}

TEST(Advice, NamesMissingResources) {
  MachineReport m = good_machine();
  m.disks[0].free_bytes = 1 << 29;
  EXPECT_EQ(only_advice(m), "/data: only 0.5 GiB are free on the disk of the current folder");
  m = good_machine();
  m.huge_pages = "never";
  EXPECT_NE(only_advice(m).find("huge pages are off"), std::string::npos);
  m = good_machine();
  m.libraries[0].version = "";
  EXPECT_NE(only_advice(m).find("libcurl is not installed"), std::string::npos);
  m = good_machine();
  m.plugins[0].installed = true, m.plugins[0].error = "x.so: cannot be loaded";
  EXPECT_EQ(only_advice(m), "x.so: cannot be loaded");
}

TEST(Doctor, FindsThisMachine) {
  const MachineReport m = examine_machine();
  EXPECT_FALSE(m.version.empty());
  EXPECT_GE(m.processors, 1);
  EXPECT_GE(m.processors, m.cores);
  EXPECT_GT(m.memory, 0);
  EXPECT_NE(std::ranges::find(m.instruction_sets, m.instruction_set), m.instruction_sets.end());
  for (const LibraryVersion& library : m.libraries)
    EXPECT_TRUE(!library.version.empty() || library.name == "libcurl") << library.name;
  const nlohmann::json json = nlohmann::json::parse(to_json(m));
  EXPECT_EQ(json["threads"]["used"], m.threads);
  EXPECT_EQ(json["advice"].size(), advice_for(m).size());
}

TEST(Doctor, UnknownFiguresAreNull) {
  const nlohmann::json json = nlohmann::json::parse(to_json({}));
  EXPECT_TRUE(json["memory"]["total_bytes"].is_null());
  EXPECT_TRUE(json["processor"]["name"].is_null());
}

}  // namespace
}  // namespace qkv

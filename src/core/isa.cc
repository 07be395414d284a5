#include "core/isa.h"

#include <hwy/highway.h>

#include <cstdlib>

#include "core/fail.h"

namespace qkv {
namespace {

struct Isa {
  const char* name;
  int64_t target;
};

constexpr Isa kIsas[] = {{"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"neon", HWY_NEON}, {"portable", HWY_STATIC_TARGET}};

// What the machine has and the library is built for. Highway remembers the processor's own list until it is replaced, so
// it is read once, before any replacement.
int64_t machine_targets() {
  static const int64_t targets = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  return targets;
}

const Isa& find(const std::string& name) {
  for (const Isa& isa : kIsas)
    if (name == isa.name) {
      if (!(machine_targets() & isa.target)) fail("QKV_ISA: this machine, or this build, has no {}", name);
      return isa;
    }
  fail("QKV_ISA: \"{}\" is none of avx512, avx2, neon, portable", name);
}

const char*& chosen() {
  static const char* name = nullptr;
  return name;
}

void choose(const Isa& isa) {
  hwy::SetSupportedTargetsForTest(isa.target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  chosen() = isa.name;
}

bool machine_has_vnni() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool& vnni() {
  static bool use = machine_has_vnni();
  return use;
}

}  // namespace

bool has_vnni() { return vnni(); }
void force_vnni(bool use) { vnni() = use && machine_has_vnni(); }

void choose_isa() {
  static const bool done = [] {
    const char* wanted = std::getenv("QKV_ISA");
    choose(find(wanted && *wanted ? wanted : available_isas().front()));
    return true;
  }();
  (void)done;
}

void force_isa(const std::string& name) {
  choose_isa();  // else the first kernel call would undo what is forced here
  choose(find(name));
}

std::string active_isa() {
  choose_isa();
  return chosen();
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa& isa : kIsas)
    if (machine_targets() & isa.target) names.emplace_back(isa.name);
  return names;
}

}  // namespace qkv

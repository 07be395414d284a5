#include "core/system/isa.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>

#if HWY_ARCH_X86_64 && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/fail.h"

namespace qkv {
namespace {

struct Isa {
  const char* name;
  int64_t target;
};

// On Arm, the portable code is that of NEON.
#if HWY_ARCH_ARM
constexpr int64_t kNeon = HWY_STATIC_TARGET;
#else
constexpr int64_t kNeon = HWY_NEON;
#endif

// Best first. The first of two names of one target is used.
constexpr Isa kIsas[] = {{"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"neon", kNeon}, {"portable", HWY_STATIC_TARGET}};

// Sets that the machine has and the library is built for. Highway remembers the processor's own list until it is
// replaced, so it is read once, before any replacement.
int64_t machine_targets() {
  static const int64_t targets = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  return targets;
}

const Isa& first_of(int64_t target) { return *std::ranges::find(kIsas, target, &Isa::target); }

const Isa& find(const std::string& name) {
  for (const Isa& isa : kIsas)
    if (name == isa.name) {
      if (!(machine_targets() & isa.target)) fail("QKV_ISA: this machine, or this build, has no {}", name);
      return first_of(isa.target);
    }
  fail("QKV_ISA: unknown instruction set \"{}\" (choose from avx512, avx2, neon, portable)", name);
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

// Instructions that kernels of "avx512" use where the machine has them.
struct Extra {
  bool there, use = there;
  void force(bool wanted) { use = wanted && there; }
};

#if HWY_ARCH_X86
#define QKV_MACHINE_HAS(feature) (__builtin_cpu_supports(feature) != 0)
#else
#define QKV_MACHINE_HAS(feature) false
#endif

Extra& vnni() {
  static Extra extra{QKV_MACHINE_HAS("avx512vnni")};
  return extra;
}

// Asks the system for the tiles of this process.
bool machine_has_amx() {
#if HWY_ARCH_X86_64 && defined(__linux__)
  constexpr unsigned kLeaf = 7, kTiles = 1u << 24, kBytes = 1u << 25;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(kLeaf, 0, &eax, &ebx, &ecx, &edx) || !(edx & kTiles) || !(edx & kBytes)) return false;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Extra& amx() {
  static Extra extra{machine_has_amx() && vnni().there};
  return extra;
}

Extra& bfloat16_products() {
  static Extra extra{QKV_MACHINE_HAS("avx512bf16")};
  return extra;
}

}  // namespace

bool has_vnni() { return vnni().use; }
void force_vnni(bool use) { vnni().force(use); }

bool has_amx() { return amx().use; }
void force_amx(bool use) { amx().force(use); }

bool has_bfloat16_products() { return bfloat16_products().use; }
void force_bfloat16_products(bool use) { bfloat16_products().force(use); }

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
    if (machine_targets() & isa.target && &isa == &first_of(isa.target)) names.emplace_back(isa.name);
  return names;
}

}  // namespace qkv

#include "analysis/sublayer_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace qkv {
namespace {

// The name of a sublayer is that of its part in a Probe.
struct NamedSublayer {
  std::string_view name, parameters;
  SublayerKind kind;
};
constexpr NamedSublayer kSublayers[] = {{"self-attention", "self_attention", SublayerKind::self_attention},
                                        {"cross-attention", "cross_attention", SublayerKind::cross_attention},
                                        {"feed-forward", "feed_forward", SublayerKind::feed_forward}};

const NamedSublayer& named(SublayerKind kind) { return *std::ranges::find(kSublayers, kind, &NamedSublayer::kind); }

const char* stack_of(const SublayerPlace& place) { return place.side == TokenSide::source ? "encoder" : "decoder"; }

}  // namespace

std::string name_of(const SublayerPlace& place) {
  return fmt::format("{} {}", stack_of(place), named(place.kind).name);
}

std::string parameters_of(const SublayerPlace& place) {
  return fmt::format("{}.layers.{}.{}", stack_of(place), place.layer, named(place.kind).parameters);
}

bool SublayerProbe::find(SublayerPlace& place) const {
  const auto& all = parts();
  if (all.size() < 3 || all[1].number < 0) return false;
  const auto kind = std::ranges::find(kSublayers, std::string_view(all[2].name), &NamedSublayer::name);
  if (kind == std::end(kSublayers) || all.size() > 3) return false;
  place = {all[0].side, all[1].number, kind->kind};
  return true;
}

}  // namespace qkv

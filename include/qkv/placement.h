// Where a model computes: on the CPU, or on a device.
#pragma once

#include <array>
#include <string_view>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// cuda is a device plugin: libqkv_cuda.so, or the one whose path is in the environment variable QKV_DEVICE. automatic
// is cuda if a plugin finds a device, and otherwise cpu.
enum class ComputeDevice { cpu, cuda, automatic };
constexpr std::array<std::string_view, 3> names_of(ComputeDevice) { return {"cpu", "cuda", "auto"}; }

// automatic is bfloat16 on a device. The CPU has no bfloat16.
enum class InferencePrecision { automatic, float32, bfloat16 };
constexpr std::array<std::string_view, 3> names_of(InferencePrecision) { return {"auto", "float32", "bfloat16"}; }

// Where the model of a run computes in inference. On a device the CPU keeps a copy of the weights, with which it
// computes attention weights and the scores of given texts. Weights of 8 and 4 bits are for the CPU.
struct Placement {
  ComputeDevice device = ComputeDevice::cpu;
  InferencePrecision precision = InferencePrecision::automatic;
};

template <class Visitor>
void visit_fields(Placement& p, Visitor&& visit) {
  visit("device", p.device,
        {"Where the model computes: cpu; cuda, a device plugin; or auto, which is cuda if a plugin finds a device",
         "execution"});
  visit("precision", p.precision,
        {"Numbers that a device computes with: float32 or bfloat16; auto means bfloat16. The CPU computes with "
         "float32 and the weights of the run",
         "execution"});
}

}  // namespace qkv

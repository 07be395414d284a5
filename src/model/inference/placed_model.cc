#include "model/inference/placed_model.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "device/copies.h"
#include "device/open_device.h"
#include "model/inference/transformer_inference.h"

namespace qkv {
namespace {

// A model of a device, which is open while the model exists.
template <class T>
struct DeviceModel {
  const std::shared_ptr<Accelerator> device = open_device();
  Transformer<Device<T>> model;

  explicit DeviceModel(const Transformer<float>& host) : model(host.config(), host.item_inputs()) {
    upload<T>(host.parameters().values(), model.parameters().values().data());
  }
};

template <class T>
std::shared_ptr<const InferenceEngine> on_device(const Transformer<float>& host) {
  const auto owner = std::make_shared<const DeviceModel<T>>(host);
  return std::make_shared<const TransformerInference<Device<T>>>(
      host, std::shared_ptr<const Transformer<Device<T>>>(owner, &owner->model));
}

std::shared_ptr<const InferenceEngine> place(const Transformer<float>& model, const Placement& placement) {
  const DevicePlugin plugin = placement.device == ComputeDevice::automatic ? find_device_plugin() : DevicePlugin();
  if (placement.device != ComputeDevice::cuda && !plugin.table) {
    if (placement.precision != InferencePrecision::bfloat16) return make_host_inference(model);
    fail("precision bfloat16 requires a device (device is cpu{})",
         plugin.missing.empty() ? "" : fmt::format(", because {}", plugin.missing));
  }
  if (std::ranges::any_of(model.parameters().all(), [](const Parameter<float>& p) { return p.is_quantized(); }))
    fail("device cuda: weights of 8 or 4 bits are for the CPU; use device cpu");
  if (placement.precision == InferencePrecision::float32) return on_device<float>(model);
  return on_device<bfloat16>(model);
}

}  // namespace

std::shared_ptr<const InferenceEngine> make_inference(const Transformer<float>& model, const Placement& placement,
                                                      const std::string& run) {
  try {
    return place(model, placement);
  } catch (const Error& e) {
    fail("{}: {}", run, e.what());
  }
}

}  // namespace qkv

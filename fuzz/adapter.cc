// Each of the three files of a LoRA adapter, next to valid ones: the adapter of a run, and the same adapter read by
// import. Weights with the update are finite.
#include <cmath>
#include <filesystem>

#include "convert/peft_adapter.h"
#include "fuzz/import.h"
#include "fuzz/small_adapter.h"

namespace qkv::fuzz {
namespace {

constexpr const char* kAdapterFiles[] = {"base.json", "adapter_config.json", "adapter_model.safetensors"};

// The base, and for each file of the adapter a run directory in which this file is the current MemoryFile.
class AdapterRuns {
 public:
  AdapterRuns() {
    const RunDirectory base(directory_ / "base"), valid(directory_ / "valid");
    for (const RunDirectory& run : {base, valid}) std::filesystem::create_directory(run.root());
    save_base(base);
    Adapter adapter = small_adapter(base);
    adapter.base = base.root();
    save_small_adapter(valid, adapter);
    for (const char* file : kAdapterFiles) {
      const std::string run = directory_ / ("with-" + std::string(file));
      std::filesystem::copy(valid.root(), run);
      std::filesystem::remove(run + "/" + file);
      std::filesystem::create_symlink(MemoryFile("").path(), run + "/" + file);
    }
  }
  std::string base() const { return directory_ / "base"; }
  RunDirectory with(const std::string& file) const { return RunDirectory(directory_ / ("with-" + file)); }

 private:
  testing::TempDir directory_;
};

void require_finite(std::span<const float> values) {
  for (const float value : values) require(std::isfinite(value), "weights are finite");
}

// The weights of another project's model that the adapter changes: one of its own, and queries and keys inside a larger
// one.
Origins module_origins() {
  static const std::vector<float> numbers(48, 1.0f);
  ForeignTensors tensors("base", {{"decoder.fc.weight", f32_tensor({4, 4}, std::span(numbers).first(16))},
                                  {"encoder.qkv.weight", f32_tensor({12, 4}, numbers)}});
  tensors.use("fc", "decoder.fc.weight", {{4, 4}, {}, false});
  tensors.use("q", "encoder.qkv.weight", {{4, 4}, {}, false});
  tensors.use("k", "encoder.qkv.weight", {{4, 4}, {.begin = 4}, false});
  return tensors.take();
}

// Reads the adapter as import does.
void apply_peft(const std::string& directory, const Origins& origins) {
  const PeftAdapter adapter(directory, origins);
  for (const auto& [name, origin] : origins) {
    std::vector<float> values(static_cast<size_t>(origin.shape[0] * origin.shape[1]));
    read_floats(origin, "base", 0, origin.shape[0], values);
    adapter.add(name, 0, origin.shape[0], values);
    require_finite(values);
  }
}

}  // namespace

void fuzz_adapter(std::string_view bytes) {
  static const AdapterRuns runs;
  static const Origins origins = module_origins();
  const auto load = [&](const char* file) {
    attempt([&] { require_finite(load_run_model(runs.with(file), small_model())->parameters().values()); });
  };
  {
    std::string text(bytes);
    const std::string mark = "\"" + std::string(kBasePath) + "\"";
    if (const size_t at = text.find(mark); at != text.npos) text.replace(at, mark.size(), "\"" + runs.base() + "\"");
    const MemoryFile file(text);
    load("base.json");
  }
  const MemoryFile file(bytes);
  load("adapter_model.safetensors");
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    attempt([&] { apply_peft(runs.with(name).root(), origins); });
}

}  // namespace qkv::fuzz

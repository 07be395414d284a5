// checkpoints/state.safetensors: counts stay within what can be added and multiplied.
#include "fuzz/reader.h"
#include "fuzz/small.h"
#include "train/loop/checkpoint.h"

void qkv::fuzz::fuzz_state(std::string_view bytes) {
  static FewParameters parameters;
  static const TrainingConfig config;
  static OptimizerState optimizer(config, parameters);
  const MemoryFile file(bytes);
  const Progress progress = load_state(file.path(), "text", parameters, optimizer);
  for (const int64_t count : {progress.step, progress.data.epoch, progress.data.window, progress.data.batch})
    require(count >= 0 && count <= int64_t{1} << 31, "a count is between 0 and 2^31");
}

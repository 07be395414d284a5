#include "io/runs/text_head_file.h"

#include <filesystem>
#include <string_view>

#include "core/fail.h"
#include "core/hash.h"
#include "core/to_size.h"
#include "io/runs/adapter.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"

namespace qkv {
namespace {

constexpr const char* kHead = "head";  // key of the metadata

// Returns the parameters in the file of the head.
Transformer<float>::HeadParameters parameters_of_file(const Transformer<float>& model) {
  Transformer<float>::HeadParameters head = model.head_parameters();
  if (model.text_head() && model.text_head()->temperature()) head.end--;
  return head;
}

// Returns a hash of parameters [begin, end), whatever their order.
std::string hash_of(const ParameterList<float>& list, int64_t begin, int64_t end) {
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; i++) {
    const Parameter<float>& p = list.all()[to_size(i)];
    const std::string_view bytes(reinterpret_cast<const char*>(p.value), to_size(p.size()) * sizeof(float));
    sum += hash_mix(hash_bytes(p.name), hash_bytes(bytes));
  }
  return fmt::format("{:016x}", sum);
}

void expect_head(const RunDirectory& directory, const std::string& path, const ParameterList<float>& head) {
  const std::string weights = weights_of(directory);
  if (!std::filesystem::exists(weights)) return;
  const Metadata metadata = Safetensors::open(weights).metadata();
  const auto named = metadata.find(kHead);
  if (named != metadata.end() && named->second != hash_of(head, 0, std::ssize(head.all())))
    fail("{}: is not the head of {}: training ended between writing the two; resume it to write both", path, weights);
}

}  // namespace

void write_text_head(const RunDirectory& run, const Transformer<float>& model) {
  const auto [list, begin, end] = parameters_of_file(model);
  if (begin == end) return;
  const bool has_labels = model.text_head()->config().kind == TextHeadConfig::Kind::labels;
  save_weights(has_labels ? run.classifier() : run.dense(), list, list.values(), begin, end);
}

std::map<std::string, std::string> head_metadata(const Transformer<float>& model) {
  const auto [list, begin, end] = parameters_of_file(model);
  if (begin == end) return {};
  return {{kHead, hash_of(list, begin, end)}};
}

void expect_own_head(const RunDirectory& directory, const EncoderRun& run) {
  if (run.dense) expect_head(directory, directory.dense(), run.dense->parameters());
}

void expect_own_head(const RunDirectory& directory, const ClassifierRun& run) {
  if (run.head) expect_head(directory, directory.classifier(), run.head->parameters());
}

}  // namespace qkv

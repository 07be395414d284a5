// LoRA adapters of PEFT, merged on import: logits are those of PEFT. tests/golden/peft/make.py writes the adapters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/runs/run.h"
#include "io/weights/safetensors.h"
#include "qkv/import.h"
#include "tests/support/decoder_cases.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;

constexpr std::string_view kLoraA = "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight";

struct AdapterCase {
  const char *adapter, *model;
};

class PeftAdapters : public ::testing::Test {
 protected:
  void take(const AdapterCase& c) const {
    testing::copy_decoder_case(c.model, model());
    std::filesystem::remove_all(adapter());
    std::filesystem::copy(std::string(QKV_GOLDEN_DIR "/peft/") + c.adapter, adapter());
  }
  std::string model() const { return directory_ / "model"; }
  std::string adapter() const { return directory_ / "adapter"; }
  std::string out() const { return directory_ / "run"; }
  std::string weights() const { return adapter() + "/adapter_model.safetensors"; }
  void import() const { import_model(model(), out(), {.adapter = adapter()}); }

  // The error of an import, without the folder of the test.
  std::string error() const {
    const std::string text = error_of([&] { import(); });
    EXPECT_FALSE(std::filesystem::exists(out()));
    return text.substr(std::min(text.size(), directory_.path().size() + 1));
  }
  std::string error_with(const std::string& member, const json& value) const {
    take({"gpt2", "gpt2"});
    json config = json::parse(testing::slurp(adapter() + "/adapter_config.json"));
    config[member] = value;
    testing::spill(adapter() + "/adapter_config.json", config.dump());
    return error();
  }
  // Replaces a text in the file of weights by one of the same length.
  void replace(const std::string& from, const std::string& to) const {
    std::string bytes = testing::slurp(weights());
    const size_t place = bytes.find(from);
    ASSERT_NE(place, std::string::npos);
    testing::spill(weights(), bytes.replace(place, from.size(), to));
  }

  testing::TempDir directory_;
};

TEST_F(PeftAdapters, GiveTheLogitsOfPeft) {
  for (const AdapterCase& c :
       {AdapterCase{"gpt2", "gpt2"}, AdapterCase{"gpt_neox", "gpt_neox"}, AdapterCase{"llama_rslora", "llama3"}}) {
    SCOPED_TRACE(c.adapter);
    take(c);
    std::filesystem::remove_all(out());
    import();
    const LanguageRun run = load_run<LanguageRun>(out());
    const Safetensors expected = Safetensors::open(adapter() + "/expected.safetensors");
    const TensorView &ids = *expected.find("ids"), &logits = *expected.find("logits");
    std::vector<int32_t> text(ids.data.size() / sizeof(int32_t));
    std::memcpy(text.data(), ids.data.data(), ids.data.size());
    std::vector<float> wanted(logits.data.size() / sizeof(float));
    std::memcpy(wanted.data(), logits.data.data(), logits.data.size());

    Arena arena;
    Context context{arena};
    Packed packed;
    packed.append(text);
    Transformer<float>::Saved saved;
    run.model->forward({}, packed, context, saved);
    const Matrix<float> found = run.model->output().logits(saved.h, context);
    float largest = 0, worst = 0;
    for (size_t i = 0; i < wanted.size(); i++) {
      largest = std::max(largest, std::abs(wanted[i]));
      worst = std::max(worst, std::abs(wanted[i] - found(static_cast<int64_t>(i) / found.cols,
                                                         static_cast<int64_t>(i) % found.cols)));
    }
    EXPECT_LE(worst, 1e-5f * largest);
  }
}

TEST_F(PeftAdapters, OfOtherKindsAreRefused) {
  const std::string where = "adapter/adapter_config.json: ";
  EXPECT_EQ(error_with("peft_type", "IA3"), where + "peft_type must be LORA (is \"IA3\")");
  EXPECT_EQ(error_with("bias", "all"), where + "bias must be none (is \"all\")");
  EXPECT_EQ(error_with("use_dora", true), where + "use_dora is not supported (is \"true\")");
  EXPECT_EQ(error_with("modules_to_save", {"lm_head"}),
            where + R"(modules_to_save is not supported (is "[\"lm_head\"]"))");
  EXPECT_EQ(error_with("alpha_pattern", {{"c_attn", 3}}),
            where + R"(alpha_pattern is not supported (is "{\"c_attn\":3}"))");
  EXPECT_EQ(error_with("lora_alpha", nullptr), where + "lora_alpha is missing");
  EXPECT_EQ(error_with("lora_alpha", 1e300),
            "adapter/adapter_model.safetensors: the adapter makes weights that are not finite");
}

TEST_F(PeftAdapters, ThatDoNotFitTheModelAreRefused) {
  const std::string file = "adapter/adapter_model.safetensors: ";
  take({"gpt2", "llama"});
  EXPECT_EQ(error(), file + "tensor \"" + std::string(kLoraA) +
                         "\": the model has no linear layer \"transformer.h.0.attn.c_attn\"");
  take({"gpt2", "gpt2"});
  replace("h.0.attn.c_attn.lora_A", "h.0.attn.c_proj.lora_A");
  EXPECT_NE(error().find("is missing"), std::string::npos);
  take({"gpt2", "gpt2"});
  replace("h.0.attn.c_attn.lora_A", "h.0.attn.c_attn.lora_C");
  EXPECT_NE(error().find("lora_"), std::string::npos);
  take({"gpt2", "gpt2"});
  replace("[3,16]", "[16,3]");
  EXPECT_NE(error().find("lora_B.weight\": must have 16 columns, the rows of lora_A (has 3)"), std::string::npos);
  std::filesystem::remove(weights());
  EXPECT_EQ(error(), "adapter/adapter_model.safetensors: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace qkv

#include "analysis/patching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "analysis/sublayer_probe.h"
#include "core/batch.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "ops/rows.h"

namespace qkv {
namespace {

constexpr int64_t kPatchedTokens = 2048;  // tokens of the texts that are read at once, unless one text has more

// A part of the layers of one side.
struct PatchedPlace {
  PatchedPart part = PatchedPart::residual;
  TokenSide side = TokenSide::target;
};

SublayerKind kind_of(PatchedPart part) {
  if (part == PatchedPart::feed_forward) return SublayerKind::feed_forward;
  const bool crosses = part == PatchedPart::cross_attention || part == PatchedPart::cross_head;
  return crosses ? SublayerKind::cross_attention : SublayerKind::self_attention;
}

// Finds the outputs of one part of the model. Layers are counted as the rows of Patching.
class PartProbe : public SublayerProbe {
 public:
  explicit PartProbe(const PatchedPlace& place) : place_(place) {}

  void output(std::string_view op, Pass pass, Matrix<float> m, int64_t) final {
    if (pass != Pass::forward) return;
    if (const std::optional<int64_t> layer = layer_of(op)) found(*layer, m);
  }
  using Probe::output;

 protected:
  virtual void found(int64_t layer, Matrix<float> m) = 0;

 private:
  std::optional<int64_t> layer_of(std::string_view op) const {
    if (side() != place_.side) return std::nullopt;
    if (place_.part == PatchedPart::residual) {
      if (op != "state") return std::nullopt;
      const Entry& last = parts().back();
      return last.name == std::string_view("embedding") ? 0 : last.number + 1;
    }
    SublayerPlace found;
    if (op != (is_head(place_.part) ? "attention" : "branch") || !find(found)) return std::nullopt;
    return found.kind == kind_of(place_.part) ? std::optional<int64_t>(found.layer) : std::nullopt;
  }

  const PatchedPlace place_;
};

// Keeps the outputs of a part: [layer][N, width].
class Recorder final : public PartProbe {
 public:
  using PartProbe::PartProbe;

  std::map<int64_t, std::vector<float>> outputs = {};

 private:
  void found(int64_t layer, Matrix<float> m) override {
    std::vector<float>& kept = outputs[layer];
    kept.clear();
    for (int64_t n = 0; n < m.rows; n++) kept.insert(kept.end(), m.row(n), m.row(n) + m.cols);
  }
};

// An output that is replaced in one text: of a layer, and of a position or a head.
struct Patch {
  int64_t layer = 0, column = 0;
};

// Replaces one output in each of several texts, of which the patched side has `tokens` tokens.
class Replacer final : public PartProbe {
 public:
  Replacer(const PatchedPlace& place, const Recorder& clean, std::span<const Patch> patches, int64_t tokens,
           int64_t heads)
      : PartProbe(place), clean_(clean), patches_(patches), tokens_(tokens), heads_(is_head(place.part) ? heads : 0) {}

 private:
  void found(int64_t layer, Matrix<float> m) override {
    const std::vector<float>& clean = clean_.outputs.at(layer);
    const int64_t width = heads_ > 0 ? m.cols / heads_ : m.cols;
    for (size_t p = 0; p < patches_.size(); p++) {
      if (patches_[p].layer != layer) continue;
      const int64_t column = patches_[p].column, first = static_cast<int64_t>(p) * tokens_;
      const auto copy = [&](int64_t n, int64_t from) {
        std::copy_n(clean.begin() + n * m.cols + from, width, m.row(first + n) + from);
      };
      if (heads_ == 0)
        copy(column, 0);
      else
        for (int64_t n = 0; n < tokens_; n++) copy(n, column * width);
    }
  }

  const Recorder& clean_;
  std::span<const Patch> patches_;
  int64_t tokens_, heads_;
};

// Reads copies of a text. target: what the decoder reads; empty in a decoder-only model. Returns the logits after the
// last token of each, [texts, V], from the arena.
Matrix<float> last_logits(const Transformer<float>& model, std::span<const int32_t> text,
                          std::span<const int32_t> target, size_t texts, Probe* probe, Arena& arena) {
  const bool encodes = model.config().has_encoder();
  Packed source, read;
  std::vector<int32_t> last;
  for (size_t i = 0; i < texts; i++) {
    if (encodes) source.append(text);
    read.append(encodes ? target : text);
    last.push_back(read.offsets.back() - 1);
  }
  Context c{.arena = arena, .recompute = true, .inference = true};
  c.probe = probe;
  Transformer<float>::Saved saved;
  model.forward(source, read, c, saved);
  const Matrix<float> h = arena.matrix<float>(std::ssize(last), saved.h.cols);
  gather_rows<float>(saved.h, last, h);
  return model.output().logits(h, c);
}

double score_of(std::span<float> logits, const PatchedTexts& texts) {
  const auto at = [&](int32_t token) { return static_cast<double>(logits[to_size(token)]); };
  if (texts.wrong) return at(*texts.answer) - at(*texts.wrong);
  log_softmax<float>({logits.data(), 1, std::ssize(logits)});
  return at(*texts.answer);
}

void check_place(PatchedPart part, PatchedStack stack, bool encodes) {
  if (stack == PatchedStack::encoder && !encodes) fail("stack must be decoder: the model has no encoder");
  if (kind_of(part) == SublayerKind::cross_attention && (!encodes || stack == PatchedStack::encoder))
    fail("part must not be {}: {} has no cross-attention", name_of(part), encodes ? "the encoder" : "the model");
}

}  // namespace

void check_patched_texts(const std::vector<std::string>& clean, const std::vector<std::string>& corrupted) {
  const auto shown = [](const std::vector<std::string>& pieces) {
    return fmt::format("{}: {}", pieces.size(), excerpt(fmt::format("{}", fmt::join(pieces, " "))));
  };
  if (clean.empty() || clean.size() != corrupted.size())
    fail("clean and corrupted must have the same number of tokens, at least 1 (have {} and {})", shown(clean),
         shown(corrupted));
}

Patching patch_activations(const Transformer<float>& model, PatchedTexts& texts, PatchedPart part, PatchedStack stack,
                           Arena& arena) {
  const Arena::Scope scope(arena);
  const bool encodes = model.config().has_encoder();
  const bool crosses = kind_of(part) == SublayerKind::cross_attention;
  if (stack == PatchedStack::automatic) stack = encodes && !crosses ? PatchedStack::encoder : PatchedStack::decoder;
  check_place(part, stack, encodes);
  const bool in_encoder = stack == PatchedStack::encoder;
  const PatchedPlace place{part, in_encoder ? TokenSide::source : TokenSide::target};
  const int64_t N = std::ssize(texts.clean), heads = model.config().attention.heads;
  Recorder clean(place);
  const Matrix<float> of_clean = last_logits(model, texts.clean, texts.target, 1, &clean, arena),
                      of_corrupted = last_logits(model, texts.corrupted, texts.target, 1, nullptr, arena);
  const auto logits = [](Matrix<float> m, int64_t n) { return std::span(m.row(n), to_size(m.cols)); };
  const auto best = [&](Matrix<float> m) {
    return static_cast<int32_t>(std::ranges::max_element(logits(m, 0)) - logits(m, 0).begin());
  };
  if (!texts.answer) texts.answer = best(of_clean);
  if (texts.wrong && texts.wrong == texts.answer) fail("wrong must not be the model's answer to the clean text");
  if (!texts.wrong) texts.wrong = best(of_corrupted);
  if (texts.wrong == texts.answer) texts.wrong.reset();

  Patching found;
  found.part = part;
  found.stack = stack;
  found.layers = (in_encoder ? model.config().encoder_layers : model.config().decoder_layers) +
                 (part == PatchedPart::residual ? 1 : 0);
  const int64_t tokens = encodes && !in_encoder ? std::ssize(texts.target) : N;
  found.columns = is_head(part) ? heads : tokens;
  found.clean_score = score_of(logits(of_clean, 0), texts);
  found.corrupted_score = score_of(logits(of_corrupted, 0), texts);
  const double whole = found.clean_score - found.corrupted_score;
  if (!std::isfinite(whole)) fail("the model's output is not finite");
  if (whole == 0) fail("clean and corrupted have the same score ({}); there is nothing to recover", found.clean_score);
  std::vector<Patch> patches;
  for (int64_t l = 0; l < found.layers; l++)
    for (int64_t column = 0; column < found.columns; column++) patches.push_back({l, column});
  const size_t at_once = to_size(std::max<int64_t>(1, kPatchedTokens / (N + std::ssize(texts.target))));
  for (size_t begin = 0; begin < patches.size(); begin += at_once) {
    const Arena::Scope batch(arena);
    const auto part_of = std::span(patches).subspan(begin, std::min(at_once, patches.size() - begin));
    Replacer replacer(place, clean, part_of, tokens, heads);
    const Matrix<float> all = last_logits(model, texts.corrupted, texts.target, part_of.size(), &replacer, arena);
    for (int64_t p = 0; p < all.rows; p++) {
      found.scores.push_back(score_of(logits(all, p), texts));
      found.recovered.push_back((found.scores.back() - found.corrupted_score) / whole);
    }
  }
  return found;
}

}  // namespace qkv

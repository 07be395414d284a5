#include "analysis/heads/translation_ablation.h"

#include <algorithm>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "decode/engine/ensemble.h"
#include "decode/search/sentence_decoder.h"
#include "decode/translation_text.h"
#include "eval/bleu_counts.h"
#include "io/runs/run.h"

namespace qkv {
namespace {

// Returns a parameter of the model, or null.
const Parameter<float>* find_parameter(const Transformer<float>& model, const std::string& name) {
  const auto& all = model.parameters().all();
  const auto found = std::ranges::find(all, name, &Parameter<float>::name);
  return found == all.end() ? nullptr : &*found;
}

// Returns what the names of the parameters begin with that give the output of a part: of the last linear layer of its
// sublayer, or of the norm after it.
std::string output_of(const ModelConfig& config, const RemovedPart& part) {
  const std::string name = parameters_of(part.place);
  const bool after = config.norm.position == NormPosition::branch || config.norm.position == NormPosition::sandwich;
  if (part.is_branch && after) return name + "_branch_norm";
  return name + (part.place.kind == SublayerKind::feed_forward ? ".second" : ".output");
}

// Sets what the last layer of a sublayer adds: its weight to zeros, and its bias to the values.
void set_output(const Parameter<float>& weight, const Parameter<float>* bias, const std::vector<float>& values) {
  std::fill_n(weight.value, weight.size(), 0.0f);
  if (bias && values.empty()) std::fill_n(bias->value, bias->size(), 0.0f);
  if (bias && !values.empty()) std::ranges::copy(values, bias->value);
}

// Sets columns of W_O to zeros, and adds what they gave for the values to the bias.
void remove_columns(const Parameter<float>& weight, const Parameter<float>* bias, const RemovedPart& part) {
  const Matrix<float> W = weight.matrix();
  for (int64_t o = 0; o < W.rows; o++)
    for (int64_t e = part.begin; e < part.end; e++) {
      if (!part.values.empty()) bias->value[o] += W(o, e) * part.values[to_size(e - part.begin)];
      W(o, e) = 0;
    }
}

// Translates sources greedily.
class GreedyTranslation {
 public:
  GreedyTranslation(const std::string& directory, const HeadTexts& texts, const HeadsOptions& options)
      : texts_(texts), run_(load_run<TranslatorRun>(directory)), text_(run_, run_.config.max_length) {
    TranslateOptions greedy = line_options(directory, options);
    greedy.beam = 1;
    edges_ = text_.edges(greedy);
    search_ = text_.search_options(greedy);
  }

  // Returns the counts of n-grams of each text.
  std::vector<BleuCounts> counts(const Transformer<float>& model, std::span<const std::vector<size_t>> batches,
                                 Arena& arena) const {
    const Ensemble models(model);
    std::vector<BleuCounts> counts(texts_.texts.size());
    for (const std::vector<size_t>& batch : batches) {
      std::vector<SearchInput> inputs;
      for (const size_t t : batch) inputs.push_back({texts_.texts[t].source.ids, {}, edges_.start});
      const std::vector<std::vector<Decoded>> found = n_best(models, inputs, search_, arena);
      for (size_t k = 0; k < inputs.size(); k++) {
        const size_t t = batch[k];
        if (found[k].empty()) fail("bleu: line {}: the model's output is not finite", texts_.texts[t].line);
        const std::string translation = text_.tokenizers().target.decode(found[k].front().ids);
        counts[t] = bleu_counts(translation, texts_.texts[t].target.text);
      }
    }
    return counts;
  }

 private:
  const HeadTexts& texts_;
  const TranslatorRun run_;
  const TranslationText text_;
  SentenceEdges edges_;
  SearchOptions search_;
};

double bleu_of_texts(const std::vector<BleuCounts>& counts, std::span<const uint32_t> texts) {
  BleuCounts sum;
  for (const uint32_t t : texts) sum += counts[t];
  return bleu_of(sum).score;
}

}  // namespace

void check_removable(const std::string& run, const Transformer<float>& model, std::span<const RemovedPart> parts,
                     Replacement replace_by) {
  if (model.config().shared_layers)
    fail("bleu must be false: the layers of {} share their weights (shared_layers is true)", run);
  if (replace_by == Replacement::zero) return;
  for (const RemovedPart& part : parts)
    if (const std::string output = output_of(model.config(), part); !find_parameter(model, output + ".bias"))
      fail("replace_by must be zero for bleu: {} of {} has no bias (is {})", output, run, name_of(replace_by));
}

void remove_part(Transformer<float>& model, const RemovedPart& part) {
  const std::string output = output_of(model.config(), part);
  const Parameter<float>*weight = find_parameter(model, output + ".weight"),
        *bias = find_parameter(model, output + ".bias");
  if (part.is_branch)
    set_output(*weight, bias, part.values);
  else
    remove_columns(*weight, bias, part);
}

BleuAblation ablate_bleu(const std::string& run, const HeadTexts& texts, const HeadsOptions& options,
                         std::span<const std::vector<size_t>> batches, Arena& arena, std::span<const RemovedPart> parts,
                         const Bootstrap& bootstrap) {
  const GreedyTranslation translation(run, texts, options);
  const std::span<const float> weights = texts.model->parameters().values();
  Transformer<float> changed(texts.config());  // the weights of a run are read-only
  const std::vector<BleuCounts> whole = translation.counts(*texts.model, batches, arena);
  BleuAblation result;
  BleuCounts all;
  for (const BleuCounts& counts : whole) all += counts;
  result.whole = bleu_of(all).score;
  for (const RemovedPart& part : parts) {
    std::ranges::copy(weights, changed.parameters().values().begin());
    remove_part(changed, part);
    const std::vector<BleuCounts> without = translation.counts(changed, batches, arena);
    result.without.push_back(bootstrap.of([&](std::span<const uint32_t> sample) {
      return bleu_of_texts(without, sample) - bleu_of_texts(whole, sample);
    }));
  }
  return result;
}

}  // namespace qkv

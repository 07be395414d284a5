// qkv::heads_to_text: for each attention a grid of heads, a row for each layer, with the strongest role of each head;
// then the best head for each relation, and the heads and sublayers that matter most.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/table_text.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "qkv/heads.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kListed = 10;       // heads or parts
constexpr size_t kMostColumns = 32;  // of a role, which may have the name of a relation

// Returns text of a file as a terminal may show it.
std::string shown(const std::string& text, size_t most = kMostColumns) { return shortened(in_one_line(text), most); }

std::string cell_of(const HeadReport& head) {
  if (head.role == "broad" || head.role == "mixed") return head.role;
  return fmt::format("{} {:.2f}", shown(head.role), head.strength);
}

// Returns the heads of a kind, by layer and head.
std::vector<const HeadReport*> heads_of(const HeadsReport& report, const std::string& kind) {
  std::vector<const HeadReport*> heads;
  for (const HeadReport& head : report.heads)
    if (head.kind == kind) heads.push_back(&head);
  return heads;
}

// The columns are the heads, in several bands if they do not fit.
std::string grid_of(const std::vector<const HeadReport*>& heads) {
  size_t columns = 6;  // of a cell
  int64_t count = 0, layers = 0;
  for (const HeadReport* head : heads) {
    columns = std::max(columns, width(cell_of(*head)));
    count = std::max(count, head->head), layers = std::max(layers, head->layer);
  }
  const auto band = static_cast<int64_t>(std::max<size_t>(1, (kTableLine - 7) / (columns + 2)));
  std::string text;
  for (int64_t begin = 1; begin <= count; begin += band) {
    const int64_t end = std::min(count, begin + band - 1);
    std::string numbers = "  head ";
    for (int64_t h = begin; h <= end; h++) numbers += fmt::format("  {:<{}}", h, columns);
    text += trimmed_line(numbers);
    for (int64_t layer = 1; layer <= layers; layer++) {
      std::string line = fmt::format("{:>6} ", layer);
      for (int64_t h = begin; h <= end; h++)
        line += "  " + fitted(cell_of(*heads[to_size((layer - 1) * count + h - 1)]), columns);
      text += trimmed_line(line);
    }
  }
  return text;
}

std::string important_heads(const HeadsReport& report) {
  std::vector<const HeadReport*> heads;
  for (const HeadReport& head : report.heads)
    if (head.importance) heads.push_back(&head);
  if (heads.empty()) return "";
  std::ranges::stable_sort(heads, std::ranges::greater(), [](const HeadReport* head) { return *head->importance; });
  std::string text = "\nMost important heads by gradient, in nats per token (1 nat = 1.44 bits)\n";
  for (size_t i = 0; i < std::min(kListed, heads.size()); i++)
    text += fmt::format("  {:.4f}  {} layer {} head {}: {}\n", *heads[i]->importance, heads[i]->kind, heads[i]->layer,
                        heads[i]->head, cell_of(*heads[i]));
  return text;
}

std::string interval_of(const Change& change) {
  return fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", change.value, change.low, change.high);
}

std::string name_of_part(const AblationReport& ablation) {
  return fmt::format("{} layer {}{}", ablation.part, ablation.layer,
                     ablation.head > 0 ? fmt::format(" head {}", ablation.head) : "");
}

std::string ablations_of(const HeadsReport& report) {
  if (report.ablations.empty()) return "";
  std::vector<const AblationReport*> order;
  for (const AblationReport& ablation : report.ablations) order.push_back(&ablation);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const AblationReport* a) { return a->loss.value; });
  std::string other;
  if (report.ndcg10) other = fmt::format("; NDCG@10 {:.4f}", *report.ndcg10);
  if (report.bleu) other = fmt::format("; BLEU {:.2f}", *report.bleu);
  std::string text =
      fmt::format("\nChange of the loss per token ({:.4f} nats{}) with a part replaced by {}, and its 95 % interval\n",
                  *report.loss, other, report.replace_by == Replacement::mean ? "its mean" : "zeros");
  const auto add = [&](const AblationReport& ablation) {
    text += fmt::format("  {}  ", interval_of(ablation.loss));
    if (ablation.ndcg10) text += fmt::format("NDCG@10 {}  ", interval_of(*ablation.ndcg10));
    if (ablation.bleu)
      text += fmt::format("BLEU {:+.2f} [{:+.2f}, {:+.2f}]  ", ablation.bleu->value, ablation.bleu->low,
                          ablation.bleu->high);
    text += name_of_part(ablation) + "\n";
  };
  if (order.size() <= 2 * kListed) {
    for (const AblationReport* ablation : order) add(*ablation);
    return text;
  }
  for (size_t i = 0; i < kListed; i++) add(*order[i]);
  text += fmt::format("  … {} more …\n", order.size() - 2 * kListed);
  for (size_t i = order.size() - kListed; i < order.size(); i++) add(*order[i]);
  return text;
}

std::string best_heads_of(const HeadsReport& report) {
  const std::vector<BestHead> best = best_heads(report);
  if (best.empty()) return "";
  size_t columns = 0;
  const auto relation = [](const BestHead& head) {
    return shown(head.direction.empty() ? head.relation : fmt::format("{}, {}", head.relation, head.direction));
  };
  for (const BestHead& head : best) columns = std::max(columns, width(relation(head)));
  std::string text = fmt::format(
      "\nBest head for each relation{}\n"
      "The baseline of a weight is uniform attention, that of words the best fixed offset, such as the\n"
      "next word. A score with a minus is below it: no head does better.\n"
      "  {:<{}}  score   baseline{:<12}  head\n",
      best.front().loss ? ", and the change of the loss without it" : "", "", columns, "");
  for (const BestHead& head : best) {
    const std::string baseline = head.offset ? fmt::format("offset {:+d}", *head.offset) : "uniform";
    const std::string name = fmt::format("{} layer {} head {}", head.kind, head.layer, head.head);
    text += trimmed_line(fmt::format("  {}  {:.3f}{}  {:.3f} {:<14}  {:<23}{}", fitted(relation(head), columns),
                                     head.value, head.value < head.baseline ? '-' : ' ', head.baseline, baseline, name,
                                     head.loss ? "  " + interval_of(*head.loss) : ""));
  }
  return text;
}

}  // namespace

std::string heads_to_text(const HeadsReport& report) {
  std::string text = fmt::format("{}: {}, {} {}", in_one_line(report.run), name_of(report.kind), report.texts,
                                 report.kind == RunKind::recommender ? "users" : "texts");
  if (report.source_tokens > 0) text += fmt::format(", {} source tokens", report.source_tokens);
  if (report.target_tokens > 0)
    text += fmt::format(", {} {}{}", report.target_tokens, report.source_tokens > 0 ? "target tokens" : "tokens",
                        report.own_translations ? " of its own translations" : "");
  text +=
      "\nStrongest role of each head, with its strength: (score - uniform) / (1 - uniform). The score is\n"
      "the weight on the keys of the role, uniform that of equal weights: 0 is no preference, 1 all weight.\n"
      "mixed: no strength reaches 0.2. broad: none does, and the weights are nearly equal.\n";
  for (const char* kind : {"encoder", "decoder", "cross"})
    if (const auto heads = heads_of(report, kind); !heads.empty())
      text += fmt::format("\n{} attention\n{}", kind, grid_of(heads));
  return text + best_heads_of(report) + important_heads(report) + ablations_of(report);
}

}  // namespace qkv

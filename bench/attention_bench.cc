// Benchmark of scaled dot-product attention, forward and backward, on the cases in attention_cases.json. Reports FLOP/s
// and the fraction of the machine's FMA peak. Operations are counted as in the comparison with PyTorch: 4 B H T S D for
// forward, 2.5 times that for backward, and half of it if causal.
#include <benchmark/benchmark.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "qkv/attention.h"
#include "qkv/system.h"

namespace {

struct Case {
  std::string name, mask;
  int64_t B, H, T, S, D;
};

std::vector<Case> cases() {
  std::ifstream file(QKV_CASES);
  std::vector<Case> list;
  for (const auto& c : nlohmann::json::parse(file))
    list.push_back({c["name"], c["mask"], c["B"], c["H"], c["T"], c["S"], c["D"]});
  return list;
}

template <class T>
std::vector<T> numbers(int64_t n) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<T> x;
  for (int64_t i = 0; i < n; i++) x.push_back(T(normal(random)));
  return x;
}

// Arrays [B, H, T, D] of one case, and the results.
template <class T>
struct Problem {
  explicit Problem(const Case& c)
      : q(numbers<T>(c.B * c.H * c.T * c.D)),
        k(numbers<T>(c.B * c.H * c.S * c.D)),
        v(numbers<T>(c.B * c.H * c.S * c.D)),
        dout(numbers<T>(c.B * c.H * c.T * c.D)),
        out(q.size()),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()),
        lse(static_cast<size_t>(c.B * c.H * c.T)) {
    in.heads = c.H, in.key_width = in.value_width = c.D;
    in.scale = 1 / std::sqrt(static_cast<float>(c.D));
    in.sequences = {c.B, nullptr, nullptr, nullptr, nullptr, c.T, c.S};
    if (c.mask == "causal") in.causal = qkv::Causal::bottom_right;
    if (c.mask == "padding") {  // lengths from S / 2 to S
      for (int64_t b = 0; b < c.B; b++)
        lengths.push_back(static_cast<int32_t>(c.S / 2 + b * (c.S - c.S / 2) / (c.B - 1)));
      in.sequences.k_end = lengths.data();
    }
    const auto view = [&c](auto& x, int64_t tokens) {
      return qkv::Heads<T>{x.data(), c.D, tokens * c.D, c.H * tokens * c.D};
    };
    const auto read = [&c](const std::vector<T>& x, int64_t tokens) {
      return qkv::Heads<const T>{x.data(), c.D, tokens * c.D, c.H * tokens * c.D};
    };
    in.q = read(q, c.T), in.k = read(k, c.S), in.v = read(v, c.S);
    to_out = view(out, c.T), to_lse = {lse.data(), 1, c.T, c.H * c.T};
    gradients = {view(dq, c.T), view(dk, c.S), view(dv, c.S), {}};
    from_out = read(out, c.T), from_dout = read(dout, c.T), from_lse = {lse.data(), 1, c.T, c.H * c.T};
    workspace.resize(std::max(qkv::attention_workspace(in), qkv::attention_backward_workspace(in)));
  }
  void forward() { qkv::attention<T>(in, to_out, to_lse, workspace); }
  void backward() { qkv::attention_backward<T>(in, from_out, from_lse, from_dout, gradients, workspace); }

  std::vector<T> q, k, v, dout, out, dq, dk, dv;
  std::vector<float> lse;
  std::vector<int32_t> lengths;
  std::vector<std::byte> workspace;
  qkv::AttentionInput<T> in;
  qkv::Heads<T> to_out;
  qkv::Heads<float> to_lse;
  qkv::Heads<const T> from_out, from_dout;
  qkv::Heads<const float> from_lse;
  qkv::AttentionGradients<T> gradients;
};

template <class T>
void time_attention(benchmark::State& state, const Case& c, bool backward) {
  Problem<T> problem(c);
  problem.forward();
  for (auto _ : state) backward ? problem.backward() : problem.forward();
  const double pairs = static_cast<double>(c.B * c.H * c.T * c.S) * (c.mask == "causal" ? 0.5 : 1);
  const double operations = (backward ? 10.0 : 4.0) * pairs * static_cast<double>(c.D);
  static const double peak = qkv::measure_fma_peak(1);
  using benchmark::Counter;
  const double n = static_cast<double>(state.iterations());
  state.counters["FLOP/s"] = Counter(operations * n, Counter::kIsRate);
  state.counters["of_peak"] = Counter(operations * n / peak, Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& c : cases())
    for (const bool backward : {false, true}) {
      const std::string name = std::string(backward ? "attention_backward/" : "attention/") + c.name;
      const auto add = [&](const std::string& type, auto f) {
        benchmark::RegisterBenchmark((name + type).c_str(), [=](benchmark::State& state) { f(state, c, backward); })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      };
      add("", time_attention<float>);
      add("/bfloat16", time_attention<qkv::bfloat16>);
    }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}

// attention and attention_backward: allocate results and split the call into parts, with the GIL released.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cstring>
#include <limits>

#include "bindings.h"
#include "parts.h"
#include "problem.h"
#include "qkv/system.h"

namespace qkv::python {
namespace {

// Returns the multiplications per part: a few tenths of a second.
template <class T>
double budget() {
  return std::is_same_v<T, double> ? 2e7 : 1e10 * threads();
}

class Workspace {
 public:
  std::span<std::byte> of(size_t bytes) {
    if (bytes > size_) memory_ = allocate(bytes), size_ = bytes;
    return {static_cast<std::byte*>(memory_.get()), size_};
  }

 private:
  Memory memory_;
  size_t size_ = 0;
};

// Calls f(part) for all parts. Handles pending signals between parts, which may throw.
template <class T, class F>
void for_parts_with_signals(const AttentionInput<T>& in, double budget, bool cut_rows, F&& f) {
  bool first = true;
  for_parts(in, budget, cut_rows, [&](const AttentionPart<T>& part) {
    if (!std::exchange(first, false)) handle_signals();
    f(part);
  });
}

template <class T>
void forward(const AttentionInput<T>& in, Heads<T> out, Heads<Arithmetic<T>> lse, double budget) {
  Workspace workspace;
  for_parts_with_signals(in, budget, true, [&](const AttentionPart<T>& part) {
    attention(part.in, part.of_queries(out), part.of_queries(lse), workspace.of(attention_workspace(part.in)));
  });
}

// The gradient of a mask may be a sum over heads and sequences, which needs a single part.
template <class T>
void backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Arithmetic<T>> lse, Heads<const T> dout,
              const AttentionGradients<T>& whole, double budget) {
  Workspace workspace;
  const auto call = [&](const AttentionPart<T>& part) {
    const AttentionGradients<T> gradients{part.of_queries(whole.dq), part.of_keys(whole.dk), part.of_keys(whole.dv),
                                          whole.dmask};
    attention_backward(part.in, part.of_queries(out), part.of_queries(lse), part.of_queries(dout), gradients,
                       workspace.of(attention_backward_workspace(part.in)));
  };
  if (whole.dmask.data)
    call({in});
  else
    for_parts_with_signals(in, budget, false, call);
}

// Computes W: [B, H, T, S] with the longest T and S, zero outside of a sequence.
template <class T>
void weights(const AttentionInput<T>& in, Heads<const Arithmetic<T>> lse, Arithmetic<T>* W, double budget) {
  using Real = Arithmetic<T>;
  const Sequences& x = in.sequences;
  double sum = 0;
  for (int64_t s = 0; s < x.count; s++)
    for (int64_t h = 0; h < in.heads; h++, W += x.T * x.S) {
      const int64_t rows = length(x.q_begin, x.q_end, x.T, s), S = length(x.k_begin, x.k_end, x.S, s);
      const int64_t step = 256;
      for (int64_t i = 0; i < rows; i += step) {
        const int64_t end = std::min(rows, i + step);
        if ((sum += static_cast<double>((end - i) * S * in.key_width)) > budget) handle_signals(), sum = 0;
        attention_weights(in, lse, {s, h, i, end}, W + i * S);
      }
      for (int64_t i = rows; i-- > 0 && S < x.S;) {  // widens rows to the longest S, starting with the last
        std::memmove(W + i * x.S, W + i * S, static_cast<size_t>(S) * sizeof(Real));
        std::fill(W + i * x.S + S, W + (i + 1) * x.S, Real{0});
      }
      std::fill(W + rows * x.S, W + x.T * x.S, Real{0});
    }
}

// Calls f(T) for the element type T of q.
template <class F>
auto with_type(const Problem& problem, F&& f) {
  if (problem.q().holds<double>()) return f(double{});
  if (problem.q().holds<bfloat16>()) return f(bfloat16{});
  return f(float{});
}

// Checks an array of the shape of the queries that is passed to backward.
template <class T, class Element>
Heads<const Element> like_queries(const Problem& problem, const Array& x, int64_t width) {
  if (const Shape expected = problem.of_queries(width); x.shape() != expected)
    fail("{} has shape {}, expected {}", x.name(), to_text(x.shape()), to_text(expected));
  if (width) x.check_last_axis();
  return problem.heads(x.data<Element>(), x.strides());
}

// Gives the queries that no sequence has the results of queries that see no key.
template <class Real>
void clear(Result& out, Result& lse) {
  out.fill_with_zeros();
  constexpr Real hidden = -std::numeric_limits<Real>::infinity();
  if (lse.data<Real>()) std::fill_n(lse.data<Real>(), lse.bytes() / sizeof(Real), hidden);
}

nb::tuple call_forward(const Arguments& arguments, bool return_lse, bool return_weights,
                       std::optional<double> part_budget) {
  const Problem problem(arguments);
  return with_type(problem, [&]<class T>(T) {
    using Real = Arithmetic<T>;
    const AttentionInput<T> in = problem.input<T>();
    Result out(problem.of_queries(problem.value_width()), dtype_of<T>()), lse, W;
    if (return_lse || return_weights) lse = Result(problem.of_queries(0), dtype_of<Real>());
    if (return_weights) W = Result(problem.weights_shape(), dtype_of<Real>());
    if (problem.is_padded()) clear<Real>(out, lse);
    const Heads<Real> lse_heads = lse.data<Real>() ? problem.heads(lse.data<Real>(), lse.strides()) : Heads<Real>{};
    const double limit = part_budget.value_or(budget<T>());
    {
      const nb::gil_scoped_release free;
      forward(in, problem.heads(out.data<T>(), out.strides()), lse_heads, limit);
      if (return_weights)
        weights(in, {lse_heads.data, lse_heads.token_stride, lse_heads.head_stride, lse_heads.sequence_stride},
                W.data<Real>(), limit);
    }
    const nb::handle like = arguments.q;
    return nb::make_tuple(out.release(like), return_lse ? lse.release(like) : nb::none(),
                          return_weights ? W.release(like) : nb::none());
  });
}

nb::tuple call_backward(nb::handle grad_out, const Arguments& arguments, nb::handle out, nb::handle lse,
                        bool return_mask_grad, std::optional<double> part_budget) {
  const Problem problem(arguments);
  const Array dout_array("attention", "grad_out", grad_out), out_array("attention", "out", out),
      lse_array("attention", "lse", lse);
  return with_type(problem, [&]<class T>(T) {
    using Real = Arithmetic<T>;
    const AttentionInput<T> in = problem.input<T>();
    const auto dout_heads = like_queries<T, T>(problem, dout_array, problem.value_width());
    const auto out_heads = like_queries<T, T>(problem, out_array, problem.value_width());
    const auto lse_heads = like_queries<T, Real>(problem, lse_array, 0);
    if (return_mask_grad && !in.mask.data) fail("return_mask_grad requires a float mask");
    Result dq(problem.q().shape(), dtype_of<T>()), dk(problem.k().shape(), dtype_of<T>()),
        dv(problem.v().shape(), dtype_of<T>()), dmask;
    for (Result* x : {&dq, &dk, &dv})
      if (problem.is_padded()) x->fill_with_zeros();
    const auto heads = [&](const Result& x) { return problem.heads(x.data<T>(), x.strides()); };
    AttentionGradients<T> gradients{heads(dq), heads(dk), heads(dv), {}};
    if (return_mask_grad) {
      dmask = Result(problem.mask()->shape(), dtype_of<Real>());
      dmask.fill_with_zeros();
      gradients.dmask = broadcast(dmask.data<Real>(), dmask.shape(), dmask.strides());
    }
    {
      const nb::gil_scoped_release free;
      backward(in, out_heads, lse_heads, dout_heads, gradients, part_budget.value_or(budget<T>()));
    }
    const nb::handle like = arguments.q;
    return nb::make_tuple(dq.release(like), dk.release(like), dv.release(like),
                          return_mask_grad ? dmask.release(like) : nb::none());
  });
}

}  // namespace

void bind_attention(nb::module_& m) {
  nb::enum_<Causal>(m, "Causal")
      .value("none", Causal::none)
      .value("bottom_right", Causal::bottom_right)
      .value("top_left", Causal::top_left);
  nb::class_<Arguments>(m, "Arguments")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object,
                    nb::object, std::optional<double>, std::optional<double>, Causal, int64_t, int64_t>(),
           nb::arg("q").none(), nb::arg("k").none(), nb::arg("v").none(), nb::arg("mask").none(),
           nb::arg("alibi").none(), nb::arg("q_offsets").none(), nb::arg("k_offsets").none(), nb::arg("lengths").none(),
           nb::arg("k_lengths").none(), nb::arg("scale").none(), nb::arg("softcap").none(), nb::arg("causal"),
           nb::arg("left"), nb::arg("right"));
  m.def("attention", call_forward);
  m.def("attention_backward", call_backward);
}

}  // namespace qkv::python

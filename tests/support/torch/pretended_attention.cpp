// N: positions of all documents   L: of one   H: heads   K: heads of keys and values   D: features of a head

#include "tests/support/torch/pretended_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/torch/pretended_kernels.h"
#include "tests/support/torch/pretended_streams.h"

namespace tests::accelerator {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

constexpr std::int64_t kFlash = 1, kEfficient = 2, kFeaturesMultiple = 8;

struct Call {
  std::int64_t longest, window;  ///< window: positions that one looks at, itself among them; 0: all before it
  double scale, dropout;
};

void refuse_wrong(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& begins, const Call& call) {
  TORCH_CHECK(begins.scalar_type() == at::kInt && begins.is_contiguous(), "cu_seqlens must be contiguous int32");
  for (const Tensor* x : {&q, &k, &v}) {
    TORCH_CHECK(x->dim() == 3 && x->size(2) % kFeaturesMultiple == 0, "head_size must be a multiple of 8");
    TORCH_CHECK(x->stride(-1) == 1, "the last dimension must be contiguous");
    TORCH_CHECK(x->scalar_type() == q.scalar_type() && x->size(0) == q.size(0), "q, k and v differ");
  }
  TORCH_CHECK(q.size(1) % k.size(1) == 0, "heads of keys must divide those of queries");
  TORCH_CHECK(call.longest > 0 && call.scale > 0, "max_seqlen and scale must be given");
}

/// One document, on the CPU in float32. [H, L, D]
struct Document {
  Tensor q, k, v;
  std::int64_t shared;  ///< heads of queries for each of keys

  Document(const Tensor& all_q, const Tensor& all_k, const Tensor& all_v, std::int64_t first, std::int64_t length)
      : shared(all_q.size(1) / all_k.size(1)) {
    const auto part = [&](const Tensor& all) { return all.narrow(0, first, length).to(at::kFloat).transpose(0, 1); };
    q = part(all_q);
    k = part(all_k).repeat_interleave(shared, 0);
    v = part(all_v).repeat_interleave(shared, 0);
  }
  /// [K, L, D]
  Tensor summed(const Tensor& of_queries) const {
    return of_queries.view({of_queries.size(0) / shared, shared, of_queries.size(1), of_queries.size(2)}).sum(1);
  }
  Tensor scores(const Call& call) const {
    const std::int64_t length = q.size(1);
    const Tensor at = at::arange(length), behind = at.unsqueeze(1) - at.unsqueeze(0);
    Tensor hidden = behind < 0;
    if (call.window > 0) hidden = hidden.logical_or(behind >= call.window);
    return at::matmul(q, k.transpose(1, 2)).mul(call.scale).masked_fill(hidden, -INFINITY);
  }
  /// The factors of the weights, drawn again for the backward pass.
  Tensor kept(const Call& call, at::Generator& generator) const {
    if (call.dropout == 0.0) return at::ones({1});
    const Tensor kept = at::empty({q.size(0), q.size(1), q.size(1)}).bernoulli_(1.0 - call.dropout, generator);
    return kept.div(1.0 - call.dropout);
  }
};

/// `each(first, length)` of the documents that are not empty.
template <typename Each>
void for_documents(const Tensor& begins, const Call& call, std::int64_t rows, const Each& each) {
  const auto* const begin = begins.const_data_ptr<std::int32_t>();
  const std::int64_t documents = begins.numel() - 1;
  TORCH_CHECK(begin[0] == 0 && begin[documents] == rows, "cu_seqlens must end with the number of positions");
  for (std::int64_t i = 0; i < documents; ++i) {
    const std::int64_t length = begin[i + 1] - begin[i];
    TORCH_CHECK(length >= 0 && length <= call.longest, "a document is longer than max_seqlen");
    if (length > 0) each(begin[i], length);
  }
}

/// Returns [N, H, D], logarithms of sums [H, N] and a seed.
std::vector<Tensor> attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& begins, const Call& call) {
  refuse_wrong(q, k, v, begins, call);
  const std::vector<Tensor> x = captured({q, k, v, begins});
  const c10::DeviceIndex device = q.device().index();
  const auto compute = [=] {
    count_kernel();
    const InKernel inside;
    run_queued(device);
    const Tensor all_q = x[0].cpu(), all_k = x[1].cpu(), all_v = x[2].cpu();
    const Tensor seed = at::randint(1 << 30, {1}, inner_generator(device), at::kLong);
    at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed.item<std::int64_t>()));
    const Tensor out = at::empty(all_q.sizes(), all_q.options());
    const Tensor sums = at::empty({all_q.size(1), all_q.size(0)});
    for_documents(x[3].cpu(), call, all_q.size(0), [&](std::int64_t first, std::int64_t length) {
      const Document one(all_q, all_k, all_v, first, length);
      const Tensor scores = one.scores(call);
      sums.narrow(1, first, length).copy_(at::logsumexp(scores, 2));
      const Tensor weights = at::softmax(scores, 2) * one.kept(call, generator);
      out.narrow(0, first, length).copy_(at::matmul(weights, one.v).transpose(0, 1));
    });
    const at::Device here = x[0].device();
    return std::vector<Tensor>{out.to(here), sums.to(here), seed.to(here)};
  };
  return run_kernel(device, x, compute);
}

std::vector<Tensor> attend_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& out, const Tensor& sums, const Tensor& begins, const Tensor& seed,
                                    const Call& call) {
  refuse_wrong(q, k, v, begins, call);
  const std::vector<Tensor> x = captured({dout, q, k, v, out, sums, begins, seed});
  const c10::DeviceIndex device = q.device().index();
  const auto compute = [=] {
    count_kernel();
    const InKernel inside;
    run_queued(device);
    const Tensor all_dout = x[0].cpu(), all_q = x[1].cpu(), all_k = x[2].cpu(), all_v = x[3].cpu(),
                 all_out = x[4].cpu(), all_sums = x[5].cpu();
    at::Generator generator =
        at::detail::createCPUGenerator(static_cast<std::uint64_t>(x[7].cpu().flatten()[0].item<std::int64_t>()));
    const Tensor dq = at::empty(all_q.sizes(), all_q.options()), dk = at::empty(all_k.sizes(), all_k.options()),
                 dv = at::empty(all_v.sizes(), all_v.options());
    for_documents(x[6].cpu(), call, all_q.size(0), [&](std::int64_t first, std::int64_t length) {
      const Document one(all_q, all_k, all_v, first, length);
      const auto part = [&](const Tensor& all) { return all.narrow(0, first, length).to(at::kFloat).transpose(0, 1); };
      const Tensor weights = (one.scores(call) - all_sums.narrow(1, first, length).unsqueeze(2)).exp();
      const Tensor kept = one.kept(call, generator), d = part(all_dout);
      const Tensor mean = (d * part(all_out)).sum(2, /*keepdim=*/true);
      const Tensor dscores = weights * (at::matmul(d, one.v.transpose(1, 2)) * kept - mean) * call.scale;
      dq.narrow(0, first, length).copy_(at::matmul(dscores, one.k).transpose(0, 1));
      dk.narrow(0, first, length).copy_(one.summed(at::matmul(dscores.transpose(1, 2), one.q)).transpose(0, 1));
      dv.narrow(0, first, length).copy_(one.summed(at::matmul((weights * kept).transpose(1, 2), d)).transpose(0, 1));
    });
    const at::Device here = x[1].device();
    return std::vector<Tensor>{dq.to(here), dk.to(here), dv.to(here)};
  };
  return run_kernel(device, x, compute);
}

/// What the kernels count differently: positions before one, or all that one looks at.
Call flash_call(std::int64_t longest, std::optional<c10::SymInt> left, std::optional<double> scale, double dropout) {
  const std::int64_t before = left ? left->expect_int() : -1;
  return {longest, before >= 0 ? before + 1 : 0, scale.value_or(0.0), dropout};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash(
    const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& begins_q, const OptionalTensor& begins_k,
    c10::SymInt longest_q, c10::SymInt, double dropout, bool is_causal, bool, std::optional<double> scale,
    std::optional<c10::SymInt> left, std::optional<c10::SymInt> right, const OptionalTensor&, const OptionalTensor&) {
  TORCH_CHECK(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(is_causal && begins_q && begins_k && (!right || right->expect_int() == 0),
              "only causal documents are here");
  const std::vector<Tensor> found =
      attend(q, k, v, *begins_q, flash_call(longest_q.expect_int(), left, scale, dropout));
  return {found[0], found[1], found[2], at::empty({0}, q.options()), at::empty({0}, q.options())};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor& out, const Tensor& sums, const Tensor& begins,
                                                  const Tensor&, c10::SymInt longest, c10::SymInt, double dropout, bool,
                                                  const Tensor& seed, const Tensor&, std::optional<double> scale,
                                                  std::optional<c10::SymInt> left, std::optional<c10::SymInt>) {
  const std::vector<Tensor> found =
      attend_backward(dout, q, k, v, out, sums, begins, seed, flash_call(longest.expect_int(), left, scale, dropout));
  return {found[0], found[1], found[2]};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt> efficient(
    const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor&, const OptionalTensor& begins_q,
    const OptionalTensor& begins_k, std::optional<c10::SymInt> longest_q, std::optional<c10::SymInt> longest_k,
    double dropout, std::int64_t mask, bool, std::optional<double> scale, const OptionalTensor&,
    std::optional<std::int64_t> window) {
  TORCH_CHECK(mask == 1 && begins_q && begins_k && longest_q && longest_k && q.size(0) == 1,
              "only causal documents are here");
  TORCH_CHECK(q.size(2) == k.size(2), "the efficient kernel shares no heads");
  const std::vector<Tensor> found = attend(q.squeeze(0), k.squeeze(0), v.squeeze(0), *begins_q,
                                           {longest_q->expect_int(), window.value_or(0), scale.value_or(0.0), dropout});
  return {found[0].unsqueeze(0), found[1], found[2], at::empty({0}, q.options()), *longest_q, *longest_k};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor&, const Tensor& out,
    const OptionalTensor& begins, const OptionalTensor&, c10::SymInt longest, c10::SymInt, const Tensor& sums,
    double dropout, const Tensor& seed, const Tensor&, std::int64_t, bool, std::optional<double> scale,
    std::optional<std::int64_t>, std::optional<std::int64_t> window, bool) {
  const std::vector<Tensor> found =
      attend_backward(dout.squeeze(0), q.squeeze(0), k.squeeze(0), v.squeeze(0), out.squeeze(0), sums, *begins, seed,
                      {longest.expect_int(), window.value_or(0), scale.value_or(0.0), dropout});
  return {found[0].unsqueeze(0), found[1].unsqueeze(0), found[2].unsqueeze(0), Tensor()};
}

/// As a GPU of compute capability 8.0 or later.
std::int64_t choice(const Tensor& q, const Tensor&, const Tensor&, const OptionalTensor&, double, bool,
                    std::optional<double>, bool) {
  return q.scalar_type() == at::kFloat ? kEfficient : kFlash;
}

}  // namespace

void register_attention(torch::Library& aten) {
  aten.impl("_flash_attention_forward", &flash);
  aten.impl("_flash_attention_backward", &flash_backward);
  aten.impl("_efficient_attention_forward", &efficient);
  aten.impl("_efficient_attention_backward", &efficient_backward);
  aten.impl("_fused_sdp_choice", &choice);
}

}  // namespace tests::accelerator

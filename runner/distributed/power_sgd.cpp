// N: numbers of a bucket's gradients, and zeros up to the next square where it is compressed as one
// n, m: rows and columns of a gradient as a matrix   r: rank
#include "runner/distributed/power_sgd.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace runner::distributed {
namespace {

constexpr const char* kSite = "gradients";
const std::string kOwnErrors = std::string(kPerRankState) + "error";
constexpr std::int64_t kGramSchmidtRankMax = 2;  // QR is faster above, as PyTorch found

/// NumPy's RandomState(seed).randint(10^9), draw by draw: PyTorch's seed for each random Q.
class SearchSeeds {
 public:
  explicit SearchSeeds(std::uint32_t seed) : seed_(seed), generator_(seed) {}
  std::uint64_t next() {
    constexpr std::uint32_t kMask = (1U << 30) - 1, kEnd = 1'000'000'000;
    std::uint32_t draw = 0;
    do draw = generator_() & kMask;
    while (draw >= kEnd);
    ++drawn_;
    return draw;
  }
  std::int64_t drawn() const { return drawn_; }
  void seek(std::int64_t drawn) {
    *this = SearchSeeds(seed_);
    while (drawn_ < drawn) next();
  }

 private:
  std::uint32_t seed_;
  std::mt19937 generator_;
  std::int64_t drawn_ = 0;
};

/// Makes the columns of [n, r] orthogonal and of length 1, in place.
void orthogonalize(const at::Tensor& matrix, double epsilon) {
  const std::int64_t rank = matrix.size(1);
  if (rank > kGramSchmidtRankMax && matrix.scalar_type() == at::kFloat) {
    matrix.copy_(std::get<0>(at::linalg_qr(matrix)));
    return;
  }
  for (std::int64_t i = 0; i < rank; ++i) {
    const at::Tensor column = matrix.narrow(1, i, 1);
    column.div_(column.norm(2, {0}, true) + epsilon);
    if (i + 1 == rank) break;
    const at::Tensor rest = matrix.narrow(1, i + 1, rank - i - 1);
    rest.sub_((column * rest).sum({0}, true) * column);
  }
}

/// One gradient, or the whole bucket, as a matrix to compress.
struct Matrix {
  at::Tensor m_nm, p_nr, q_mr;
};

/// One bucket between launch() and wait().
struct InFlight {
  std::size_t bucket = 0;
  at::Tensor flat;
  std::vector<at::Tensor> gradients;
  at::Tensor own_N;               ///< input of the exchange: this rank's gradients plus the previous error
  at::Tensor result_N;            ///< result, piece by piece
  std::vector<at::Tensor> whole;  ///< parts of `result_N` that are exchanged uncompressed,
  at::Tensor first;               ///< and with them, in this order, all P
  std::vector<Matrix> matrices;
  std::vector<at::Tensor> results_nm;  ///< by matrix: its part of `result_N`
  at::Tensor q;                        ///< all Q
  std::unique_ptr<Pending> pending;
  bool compressed = false;
};

class PowerSgd final : public CommHook {
 public:
  PowerSgd(ProcessGroup& group, const PowerSgdOptions& options)
      : group_(group), options_(options), seeds_(options.seed) {}

  bool averages() const override { return true; }

  void launch(const at::Tensor& flat, const std::vector<at::Tensor>& gradients) override {
    InFlight& one = in_flight_.emplace_back();
    one.bucket = in_flight_.size() - 1;
    one.flat = flat;
    if (iteration_ < options_.start_iter) {
      flat.div_(group_.size());
      one.pending = group_.begin_all_reduce(flat, kSite);
      return;
    }
    one.compressed = true;
    one.gradients = gradients;
    add_last_error(one);
    choose_parts(one);
    compute_p(one);
    one.pending = group_.begin_all_reduce(one.first, kSite);
  }

  void wait() override {
    for (InFlight& one : in_flight_) {
      one.pending->wait();
      if (one.compressed) launch_q(one);
    }
    for (InFlight& one : in_flight_) {
      if (!one.compressed) continue;
      if (one.pending != nullptr) one.pending->wait();
      unpack(one);
    }
    in_flight_.clear();
    ++iteration_;
  }

  void save_state(core::StateWriter& writer) const override {
    writer.value("iteration", core::Node::integer(iteration_));
    writer.value("seeds_drawn", core::Node::integer(seeds_.drawn()));
    writer.value("buckets", core::Node::integer(static_cast<std::int64_t>(std::max(errors_.size(), qs_.size()))));
    const auto write = [&writer](const std::string& name, const std::vector<at::Tensor>& tensors) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].defined()) writer.tensor(name + "." + std::to_string(i), tensors[i]);
      }
    };
    write(kOwnErrors, errors_);
    write("q", qs_);
  }

  void load_state(const core::StateReader& reader) override {
    iteration_ = reader.value("iteration").as_integer();
    seeds_.seek(reader.value("seeds_drawn").as_integer());
    const auto read = [&reader](const std::string& name) {
      std::vector<at::Tensor> tensors(static_cast<std::size_t>(reader.value("buckets").as_integer()));
      for (std::size_t i = 0; i < tensors.size(); ++i) {  // some entries are missing: see forget()
        const std::string key = name + "." + std::to_string(i);
        if (reader.has(key)) tensors[i] = reader.tensor(key);
      }
      return tensors;
    };
    errors_ = read(kOwnErrors);
    qs_ = read("q");
  }

 private:
  static at::Tensor& slot(std::vector<at::Tensor>& tensors, std::size_t bucket) {
    if (tensors.size() <= bucket) tensors.resize(bucket + 1);
    return tensors[bucket];
  }

  /// Side of the smallest square that holds this many numbers.
  static std::int64_t side_of(std::int64_t numbers) {
    return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(numbers))));
  }

  void add_last_error(InFlight& one) {
    std::vector<at::Tensor> parts;
    std::int64_t numbers = 0;
    for (const at::Tensor& gradient : one.gradients) {
      parts.push_back(gradient.reshape({-1}));
      numbers += gradient.numel();
    }
    if (options_.batched) {
      const std::int64_t side = side_of(numbers);
      parts.push_back(at::zeros({side * side - numbers}, one.flat.options()));
    }
    one.own_N = at::cat(parts);
    one.result_N = at::empty_like(one.own_N);
    if (!options_.use_error_feedback) return;
    const at::Tensor& error_N = slot(errors_, one.bucket);
    if (error_N.defined()) one.own_N.add_(error_N.to(one.own_N.device()));  // a checkpoint's is on the CPU
  }

  std::int64_t rank_of(std::int64_t n, std::int64_t m) const { return std::min({n, m, options_.rank}); }

  bool shrinks(std::int64_t n, std::int64_t m) const {
    const auto compressed = static_cast<double>((n + m) * rank_of(n, m));
    return compressed * options_.min_compression_rate < static_cast<double>(n * m);
  }

  /// Selects the parts to compress: those of one shape together, shapes in order of arrival, as PyTorch does.
  void choose_parts(InFlight& one) const {
    if (options_.batched) {
      const std::int64_t side = side_of(one.own_N.numel());
      one.matrices.push_back({one.own_N.view({side, side}), {}, {}});
      one.results_nm.push_back(one.result_N.view({side, side}));
      return;
    }
    std::int64_t begin = 0;
    struct Part {
      at::Tensor m_nm, result_nm;
    };
    std::vector<Part> parts;
    for (const at::Tensor& gradient : one.gradients) {
      const std::int64_t numbers = gradient.numel(), n = gradient.dim() > 0 ? gradient.size(0) : 1;
      const std::int64_t m = numbers / std::max<std::int64_t>(n, 1);
      const at::Tensor own = one.own_N.narrow(0, begin, numbers), result = one.result_N.narrow(0, begin, numbers);
      begin += numbers;
      if (!shrinks(n, m)) {
        result.copy_(own);
        one.whole.push_back(result);
        continue;
      }
      const auto after = std::find_if(parts.rbegin(), parts.rend(), [n, m](const Part& part) {
        return part.m_nm.size(0) == n && part.m_nm.size(1) == m;
      });
      parts.insert(after == parts.rend() ? parts.end() : after.base(), {own.view({n, m}), result.view({n, m})});
    }
    for (const Part& part : parts) {
      one.matrices.push_back({part.m_nm, {}, {}});
      one.results_nm.push_back(part.result_nm);
    }
  }

  /// P = M Q, with the last Q (warm start) or a new one.
  void compute_p(InFlight& one) {
    std::int64_t whole = 0, ps = 0, qs = 0;
    for (const at::Tensor& part : one.whole) whole += part.numel();
    for (const Matrix& matrix : one.matrices) {
      const std::int64_t n = matrix.m_nm.size(0), m = matrix.m_nm.size(1);
      ps += n * rank_of(n, m);
      qs += m * rank_of(n, m);
    }
    at::Tensor& q = slot(qs_, one.bucket);
    const bool fresh = !q.defined() || !options_.warm_start;
    q = fresh ? at::empty({qs}, one.own_N.options()) : q.to(one.own_N.device());
    one.q = q;
    one.first = at::empty({whole + ps}, one.own_N.options());
    std::int64_t begin = 0;
    for (const at::Tensor& part : one.whole) {
      one.first.narrow(0, begin, part.numel()).copy_(part);
      begin += part.numel();
    }
    std::optional<at::Generator> generator;
    if (fresh) generator = at::detail::createCPUGenerator(seeds_.next());
    std::int64_t q_begin = 0;
    for (Matrix& matrix : one.matrices) {
      const std::int64_t n = matrix.m_nm.size(0), m = matrix.m_nm.size(1), rank = rank_of(n, m);
      matrix.p_nr = one.first.narrow(0, begin, n * rank).view({n, rank});
      matrix.q_mr = q.narrow(0, q_begin, m * rank).view({m, rank});
      begin += n * rank;
      q_begin += m * rank;
      if (fresh) matrix.q_mr.copy_(at::randn({m, rank}, generator, q.options().device(at::kCPU)));
      orthogonalize(matrix.q_mr, options_.epsilon);
      matrix.p_nr.copy_(at::matmul(matrix.m_nm, matrix.q_mr));
    }
  }

  /// The sums of P are ready: launches Q = M^T P.
  void launch_q(InFlight& one) {
    std::int64_t begin = 0;
    for (const at::Tensor& part : one.whole) {
      part.copy_(one.first.narrow(0, begin, part.numel()).div_(group_.size()));
      begin += part.numel();
    }
    for (Matrix& matrix : one.matrices) {
      orthogonalize(matrix.p_nr, options_.epsilon);
      matrix.q_mr.copy_(at::matmul(matrix.m_nm.t(), matrix.p_nr));
    }
    one.pending = one.matrices.empty() ? nullptr : group_.begin_all_reduce(one.q, kSite);
  }

  void unpack(InFlight& one) {
    one.q.div_(group_.size());
    for (std::size_t i = 0; i < one.matrices.size(); ++i) {
      one.results_nm[i].copy_(at::matmul(one.matrices[i].p_nr, one.matrices[i].q_mr.t()));
    }
    std::int64_t begin = 0;
    for (const at::Tensor& gradient : one.gradients) {
      gradient.copy_(one.result_N.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
    if (!std::isfinite(one.result_N.sum().item<double>())) return forget(one.bucket);
    if (options_.use_error_feedback) slot(errors_, one.bucket) = one.own_N.sub_(one.result_N);
  }

  /// After a step that was bad on some rank, which all ranks see: its error must not enter all later steps.
  void forget(std::size_t bucket) {
    slot(errors_, bucket) = at::Tensor();
    slot(qs_, bucket) = at::Tensor();
  }

  ProcessGroup& group_;
  const PowerSgdOptions options_;
  SearchSeeds seeds_;
  std::int64_t iteration_ = 0;
  std::vector<at::Tensor> errors_, qs_;  // by bucket
  std::vector<InFlight> in_flight_;
};

}  // namespace

std::unique_ptr<CommHook> make_power_sgd(ProcessGroup& group, const PowerSgdOptions& options) {
  return std::make_unique<PowerSgd>(group, options);
}

}  // namespace runner::distributed

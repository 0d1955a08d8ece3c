// N: rows of the pass   H: heads   K: heads of keys and values   D: features of a head   S: positions

#include "components/part/cached/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "components/kernels/transformer.h"
#include "components/ops/torch_bridge.h"
#include "components/part/heads.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;

constexpr std::int64_t kStepMax = 32;      // elements of a row that a kernel reads at once
constexpr std::int64_t kRowsOfTask = 72;   // queries that are compared with keys at once
constexpr std::int64_t kRowsOfSplit = 64;  // rows that are split into heads at once

/// cos and sin of a segment's positions; null without rotation.
struct Angles {
  at::Tensor cos, sin;  // [S, 1, turned / 2], of all positions up to the segment's end
  std::int64_t half() const { return cos.defined() ? cos.size(2) : 0; }
  const float* cos_at(std::int64_t position) const {
    return cos.defined() ? data<float>(cos) + position * half() : nullptr;
  }
  const float* sin_at(std::int64_t position) const {
    return sin.defined() ? data<float>(sin) + position * half() : nullptr;
  }
};

/// The first 2 * half features of consecutive rows of d.
void turn(float* x, const float* cos, const float* sin, std::int64_t rows, std::int64_t half, std::int64_t d) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < half; ++c) {
      float &a = x[r * d + c], &b = x[r * d + half + c];
      const float first = a, second = b, by_cos = cos[r * half + c], by_sin = sin[r * half + c];
      a = first * by_cos - second * by_sin;
      b = second * by_cos + first * by_sin;
    }
  }
}

void lower(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }
void lower(const float* from, Bf16* to, std::int64_t size) { kernels::transformer<Bf16>().lower(from, to, size); }

/// One pass through one layer.
template <typename T>
class Attention {
 public:
  Attention(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation, const AttentionOptions& options,
            KvCache::Layer& layer, const CachedPass& pass)
      : qkv_(data<float>(qkv)), bias_(data<float>(bias)), o_(options), pass_(pass), room_(layer.k.size(2)) {
    k_ = data<T>(layer.k);
    v_ = data<T>(layer.v);
    const std::int64_t rows = qkv.size(0);
    q_NHD_ = new_tensor<T>({rows, o_.heads, o_.head});
    mixed_ = new_tensor<float>({rows, o_.heads * o_.head});
    std::int64_t row = 0;
    for (const Segment& segment : pass.segments) {
      first_rows_.push_back(row);
      row += segment.count;
      angles_.emplace_back();
      if (rotation != nullptr) angles_.back() = {rotation->cos(segment.end()), rotation->sin(segment.end())};
    }
  }

  at::Tensor run() {
    std::vector<Task> splits;
    each_piece(kRowsOfSplit, [&splits](std::size_t i, std::int64_t from, std::int64_t rows) {
      splits.push_back({i, 0, from, rows});
    });
    each_task(splits, [this](const Task& task) { split(task.segment, task.from, task.rows); });
    const std::int64_t rows_of_task = std::max<std::int64_t>(1, kRowsOfTask / shared());
    each_piece(rows_of_task, [this](std::size_t i, std::int64_t from, std::int64_t rows) {
      for (std::int64_t h = 0; h < o_.kv_heads; ++h) tasks_.push_back({i, h, from, rows});
    });
    balance();
    each_task(tasks_, [this](const Task& task) { attend(task); });
    return mixed_;
  }

 private:
  struct Task {
    std::size_t segment;
    std::int64_t kv_head, from, rows;  // rows [from, from + rows) of the segment
  };

  std::int64_t shared() const { return o_.heads / o_.kv_heads; }

  /// Side by side.
  template <typename F>
  static void each_task(const std::vector<Task>& tasks, const F& f) {
    kernels::parallel_for_rows(static_cast<std::int64_t>(tasks.size()),
                               [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                                 for (std::int64_t i = begin; i < end; ++i) f(tasks[static_cast<std::size_t>(i)]);
                               });
  }

  /// Later rows of a sequence look at more: pairs of a short and a long task are as long as each other, so that each
  /// thread's stretch of them takes as long.
  void balance() {
    std::vector<Task> paired;
    for (std::size_t i = 0, j = tasks_.size(); i < j;) {
      paired.push_back(tasks_[i++]);
      if (i < j) paired.push_back(tasks_[--j]);
    }
    tasks_ = std::move(paired);
  }

  template <typename F>
  void each_piece(std::int64_t rows, const F& f) const {
    for (std::size_t i = 0; i < pass_.segments.size(); ++i) {
      for (std::int64_t from = 0; from < pass_.segments[i].count; from += rows) {
        f(i, from, std::min(rows, pass_.segments[i].count - from));
      }
    }
  }

  T* keys(std::int64_t slot, std::int64_t kv_head) const {
    return k_ + (slot * o_.kv_heads + kv_head) * room_ * o_.head;
  }
  T* values(std::int64_t slot, std::int64_t kv_head) const {
    return v_ + (slot * o_.kv_heads + kv_head) * room_ * o_.head;
  }

  /// Rotated queries go to q_NHD_, keys and values to the cache.
  void split(std::size_t i, std::int64_t from, std::int64_t rows) {
    const Segment& segment = pass_.segments[i];
    const std::int64_t d = o_.head, position = segment.first + from, row = first_rows_[i] + from;
    const Angles& angles = angles_[i];
    const float *cos = angles.cos_at(position), *sin = angles.sin_at(position);
    const bool turns_part = cos != nullptr && 2 * angles.half() < d;
    std::vector<float> parts(static_cast<std::size_t>((o_.heads + 2 * o_.kv_heads) * rows * d));
    float *q = parts.data(), *k = q + o_.heads * rows * d, *v = k + o_.kv_heads * rows * d;
    kernels::transformer<float>().split_heads({qkv_ + row * (o_.heads + 2 * o_.kv_heads) * d, bias_,
                                               turns_part ? nullptr : cos, turns_part ? nullptr : sin, q, k, v, rows,
                                               o_.heads, o_.kv_heads, d});
    for (std::int64_t h = 0; turns_part && h < o_.heads + o_.kv_heads; ++h) {  // keys lie behind queries
      turn(q + h * rows * d, cos, sin, rows, angles.half(), d);
    }
    T* const to_q = data<T>(q_NHD_) + row * o_.heads * d;
    for (std::int64_t h = 0; h < o_.heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) lower(q + (h * rows + r) * d, to_q + (r * o_.heads + h) * d, d);
    }
    std::vector<T> low(static_cast<std::size_t>(rows * d));
    for (std::int64_t h = 0; h < o_.kv_heads; ++h) {
      lower(k + h * rows * d, keys(segment.slot, h) + position * d, rows * d);
      lower(v + h * rows * d, low.data(), rows * d);
      T* const to_v = values(segment.slot, h) + position;
      for (std::int64_t c = 0; c < d; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) to_v[c * room_ + r] = low[static_cast<std::size_t>(r * d + c)];
      }
    }
  }

  void attend(const Task& task) const {
    const Segment& segment = pass_.segments[task.segment];
    const std::int64_t d = o_.head, first = segment.first + task.from, seen = first + task.rows;
    const std::int64_t columns = (seen + kStepMax - 1) / kStepMax * kStepMax;  // those beyond have the weight 0
    const std::int64_t row = first_rows_[task.segment] + task.from, queries = shared() * task.rows;
    std::vector<float> scores(static_cast<std::size_t>(queries * columns));
    const T* const k = keys(segment.slot, task.kv_head);
    const T* const q = data<T>(q_NHD_) + (row * o_.heads + task.kv_head * shared()) * d;
    // Query r of head g is row g * rows + r.
    if (task.rows < shared()) {
      for (std::int64_t r = 0; r < task.rows; ++r) {
        kernels::transformer<T>().dots(
            {q + r * o_.heads * d, d, k, d, scores.data() + r * columns, task.rows * columns, shared(), seen, d});
      }
    } else {
      for (std::int64_t g = 0; g < shared(); ++g) {
        kernels::transformer<T>().dots(
            {q + g * d, o_.heads * d, k, d, scores.data() + g * task.rows * columns, columns, task.rows, seen, d});
      }
    }
    float scale = static_cast<float>(o_.scale);
    if (o_.cap > 0) {
      const auto cap = static_cast<float>(o_.cap);
      for (float& score : scores) score = cap * std::tanh(score * scale / cap);
      scale = 1;
    }
    for (std::int64_t g = 0; g < shared(); ++g) {
      kernels::transformer<float>().softmax(scores.data() + g * task.rows * columns, scale,
                                            {first, task.rows, columns, columns, o_.window});
    }
    std::vector<float> mixed(static_cast<std::size_t>(queries * d));
    std::vector<T> weights(static_cast<std::size_t>(queries * columns));
    lower(scores.data(), weights.data(), queries * columns);
    kernels::transformer<T>().dots(
        {weights.data(), columns, values(segment.slot, task.kv_head), room_, mixed.data(), d, queries, d, columns});
    for (std::int64_t g = 0; g < shared(); ++g) {
      for (std::int64_t r = 0; r < task.rows; ++r) {
        std::copy_n(mixed.data() + (g * task.rows + r) * d, d,
                    data<float>(mixed_) + ((row + r) * o_.heads + task.kv_head * shared() + g) * d);
      }
    }
  }

  const float *qkv_, *bias_;
  const AttentionOptions& o_;
  const CachedPass& pass_;
  std::int64_t room_;
  T *k_, *v_;
  at::Tensor q_NHD_, mixed_;
  std::vector<std::int64_t> first_rows_;
  std::vector<Angles> angles_;
  std::vector<Task> tasks_;
};

}  // namespace

template <typename T>
at::Tensor attend_cached(const at::Tensor& qkv, const at::Tensor& bias, const Rotation* rotation,
                         const AttentionOptions& options, KvCache::Layer& layer, const CachedPass& pass) {
  return Attention<T>(qkv, bias, rotation, options, layer, pass).run();
}

namespace {

/// Of the positions of a segment to all up to its last one, [1, H, count, end]. What lies ahead is not looked at.
at::Tensor bias_of(const at::Tensor& behind_HL, const Segment& segment) {
  const at::TensorOptions on = at::TensorOptions().dtype(at::kLong).device(behind_HL.device());
  const at::Tensor distance = at::arange(segment.first, segment.end(), on).unsqueeze(1) - at::arange(segment.end(), on);
  return behind_HL.index_select(1, distance.clamp_min(0).flatten())
      .view({1, behind_HL.size(0), segment.count, segment.end()});
}

}  // namespace

at::Tensor attend_cached_plainly(const at::Tensor& qkv, const Rotation* rotation, const SelfAttention& attention,
                                 KvCache::Layer& layer, const CachedPass& pass, const at::Tensor* behind_HL) {
  std::vector<at::Tensor> mixed;
  std::int64_t row = 0;
  for (const Segment& segment : pass.segments) {
    auto [q_BTHD, k_BTKD, v_BTKD] = attention.heads(qkv.narrow(0, row, segment.count).unsqueeze(0));
    row += segment.count;
    if (rotation != nullptr) {
      q_BTHD = rotate(q_BTHD, *rotation, segment.first).to(v_BTKD.scalar_type());
      k_BTKD = rotate(k_BTKD, *rotation, segment.first).to(v_BTKD.scalar_type());
    }
    layer.k.select(0, segment.slot).narrow(0, segment.first, segment.count).copy_(k_BTKD[0]);
    layer.v.select(0, segment.slot).narrow(0, segment.first, segment.count).copy_(v_BTKD[0]);
    const at::Tensor nothing, bias = behind_HL != nullptr ? bias_of(*behind_HL, segment) : at::Tensor();
    const std::optional<Dropout> no_dropout;
    AttentionPass of_segment{nothing, no_dropout};
    if (bias.defined()) of_segment.bias = &bias;
    mixed.push_back(attend(q_BTHD, layer.k.narrow(0, segment.slot, 1).narrow(1, 0, segment.end()),
                           layer.v.narrow(0, segment.slot, 1).narrow(1, 0, segment.end()), attention.options(),
                           of_segment)[0]);
  }
  return at::cat(mixed, 0);
}

at::Tensor attend_sources(const at::Tensor& q, const AttentionOptions& o, std::size_t number, const CachedPass& pass) {
  const at::Tensor nothing;
  const std::optional<Dropout> no_dropout;
  std::vector<at::Tensor> mixed;
  std::int64_t row = 0;
  for (const Segment& segment : pass.segments) {
    const at::Tensor q_BTHD = q.narrow(0, row, segment.count).view({1, segment.count, o.heads, o.head});
    row += segment.count;
    const Keys& keys = pass.cache.source(segment.slot, number);
    mixed.push_back(attend(q_BTHD, keys.k, keys.v, o, {nothing, no_dropout})[0]);
  }
  return at::cat(mixed, 0);
}

template at::Tensor attend_cached<float>(const at::Tensor&, const at::Tensor&, const Rotation*, const AttentionOptions&,
                                         KvCache::Layer&, const CachedPass&);
template at::Tensor attend_cached<Bf16>(const at::Tensor&, const at::Tensor&, const Rotation*, const AttentionOptions&,
                                        KvCache::Layer&, const CachedPass&);

}  // namespace components::part

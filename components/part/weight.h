#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace components {
class Bf16WeightCache;
struct NamedTensor;
}  // namespace components

namespace components::part {

struct QuantizedForm;

/// The numbers that a new parameter begins with.
struct Init {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double value = 0.0;          ///< the constant; the bound of a uniform distribution around 0; a normal one's deviation
  std::int64_t zero_row = -1;  ///< one that is zero instead: of padding; -1: none
  /// Of normal ones, the first `first_rows` rows are wider or narrower by this factor.
  std::int64_t first_rows = 0;
  double first_factor = 1.0;
};

inline Init constant(double value) { return {Init::Kind::kConstant, value}; }
inline Init uniform(double bound) { return {Init::Kind::kUniform, bound}; }
inline Init normal(double deviation) { return {Init::Kind::kNormal, deviation}; }
/// Of a weight whose every output is a sum over `fan_in` inputs, as in torch.nn.Linear and torch.nn.Conv2d.
Init kaiming_uniform(std::int64_t fan_in);
/// Of the bias beside it.
Init bias_uniform(std::int64_t fan_in);

/// Gives the parameters and buffers that blocks declare their storage, in the order of declaration.
class WeightMaker {
 public:
  virtual ~WeightMaker() = default;
  /// A floating-point tensor of that shape. `name` is the full one: `h.0.ln_1.weight`.
  virtual at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) = 0;
  /// The same of a tensor that is saved but not trained.
  virtual at::Tensor make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init);
  /// True on the meta device: shapes only, no memory and no draw.
  virtual bool meta() const { return false; }
  /// How the weight of a linear layer, under its full name, is kept; null: as a parameter.
  virtual const QuantizedForm* form_of(const std::string& /*name*/) const { return nullptr; }
};

/// Whole tensors on the CPU, float32 or bfloat16, drawn from LibTorch's default generator: a seed and an order give the
/// same numbers, which those in bfloat16 are rounded from.
class DrawnWeights final : public WeightMaker {
 public:
  /// `in_bf16`: the full names of those in bfloat16.
  explicit DrawnWeights(std::set<std::string> in_bf16 = {});
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;

 private:
  std::set<std::string> in_bf16_;
};

/// The same tensors for a model that is read from a file before anyone looks at it: what would be drawn has any
/// numbers, and takes no memory before it is written to.
class UnfilledWeights final : public WeightMaker {
 public:
  explicit UnfilledWeights(std::set<std::string> in_bf16 = {});
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;

 private:
  std::set<std::string> in_bf16_;
};

/// The parameters of a process that keeps its rows of them alone: each is made whole by another maker, which draws the
/// same numbers so, and has no memory once its rows are copied. Buffers stay whole, and what `rows` leaves so.
class WeightRows final : public WeightMaker {
 public:
  using Rows = std::function<at::Tensor(const std::string& name, const at::Tensor& whole)>;
  /// `rows`: those to keep, in the memory of the whole; an undefined tensor keeps the parameter as it is. Both outlive
  /// this.
  WeightRows(WeightMaker& whole, const Rows& rows);
  ~WeightRows() override;
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  at::Tensor make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  const QuantizedForm* form_of(const std::string& name) const override { return whole_.form_of(name); }

  /// By the parameters' names, without those that are kept whole.
  std::vector<NamedTensor> take();

 private:
  WeightMaker& whole_;
  const Rows& rows_;
  std::vector<NamedTensor> kept_;
};

/// Another maker's tensors, without the weights that are kept in fewer bits.
class QuantizedWeights final : public WeightMaker {
 public:
  using Forms = std::map<std::string, QuantizedForm>;  ///< by full names
  /// Both outlive this.
  QuantizedWeights(WeightMaker& others, const Forms& forms) : others_(others), forms_(forms) {}
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  at::Tensor make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  bool meta() const override { return others_.meta(); }
  const QuantizedForm* form_of(const std::string& name) const override;

 private:
  WeightMaker& others_;
  const Forms& forms_;
};

class MetaWeights final : public WeightMaker {
 public:
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  bool meta() const override { return true; }
};

/// A tensor in the type of products, float32 or bfloat16: itself, or a copy that lives as long as the result.
at::Tensor for_products(const at::Tensor& tensor, bool bf16);

/// A tensor of a part, which it trains or reads, and beside it the copy that products may need.
class Weight {
 public:
  Weight();  ///< none: a layer without it
  explicit Weight(const at::Tensor& tensor);
  ~Weight();
  Weight(Weight&& other) noexcept;
  Weight& operator=(Weight&& other) noexcept;

  const at::Tensor& tensor() const { return *tensor_; }
  bool defined() const;
  /// The tensor in the type of products, float32 or bfloat16: itself, or a copy. `keeps`: a copy of a float32 tensor in
  /// bfloat16 is kept and made again when that has changed; else it lives as long as the result.
  at::Tensor for_products(bool bf16, bool keeps) const;

 private:
  std::unique_ptr<at::Tensor> tensor_;
  std::unique_ptr<Bf16WeightCache> low_;
};

/// The parameters and buffers of one block, as its parts declare them.
class Declared {
 public:
  /// For a block without any: to declare one is an error of the block.
  Declared();
  /// `maker` is used as long as something is declared, not later.
  explicit Declared(WeightMaker& maker);
  ~Declared();

  /// A trained tensor under its full name, made at once.
  at::Tensor parameter(std::string full_name, std::span<const std::int64_t> shape, const Init& init);
  /// The same for one that is saved but not trained.
  at::Tensor buffer(std::string full_name, std::span<const std::int64_t> shape, double value);

  /// WeightMaker::form_of() and meta() of who makes them.
  const QuantizedForm* form_of(const std::string& full_name) const;
  bool on_meta() const;

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }

 private:
  WeightMaker* maker_ = nullptr;
  std::vector<NamedTensor> parameters_, buffers_;
};

}  // namespace components::part

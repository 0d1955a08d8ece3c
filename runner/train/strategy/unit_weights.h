#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/strategy/row_gradients.h"
#include "runner/train/strategy/row_shards.h"
#include "runner/train/strategy/weight_memory.h"

namespace runner::distributed {
class Pending;
class ProcessGroup;
}  // namespace runner::distributed

namespace runner::train {

/// The parameters of one or several blocks, of which each process holds some rows. They are gathered before the blocks
/// run and freed afterwards, and their gradients are added up where the rows are.
class UnitWeights {
 public:
  struct Parameter {
    components::NamedTensor whole;
    std::size_t position = 0;            ///< among the trained ones of the model; not of a frozen one
    std::optional<c10::ScalarType> low;  ///< what passes compute with, if not the parameter's type
    at::Tensor rows = {};                ///< this process's, of a parameter without memory
  };

  /// What a gather makes of the parameters.
  enum class Form {
    kPass,  ///< those with a `low` are of that type, and so are the gradients that they get
    kExact  ///< of their own type, as they are saved
  };

  /// Takes the rows of `place` out of the parameters, which stay whole until free(); or all begin as rows. `memory`
  /// outlives this.
  UnitWeights(std::vector<Parameter> parameters, const ShardPlace& place, WeightMemory& memory);
  ~UnitWeights();
  UnitWeights(UnitWeights&&) noexcept;
  UnitWeights& operator=(UnitWeights&&) noexcept;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// This process's rows of each parameter.
  const std::vector<at::Tensor>& shards() const { return shards_; }
  bool trains() const { return !gradients_.empty(); }
  /// The exchange of the gradients of those that are trained, in the types that they have in a pass.
  RowGradients& gradients() { return gradients_; }

  /// The rows become those of the whole parameters, which must be there.
  void take_rows();
  void free();
  /// Memory for all parameters in their own type, with any numbers.
  void make_room();

  /// Of parameters that are freed: one is whole, with any numbers where it is not this process's rows, and close()
  /// takes the rows out of it.
  void open(std::size_t i);
  void close(std::size_t i);

  /// A collective of the copy: sends this process's rows. Nothing where the parameters are whole or on their way.
  void begin_gather(distributed::ProcessGroup& copy, Form form);
  /// Waits for the others' rows, and has the whole parameters.
  void end_gather();
  /// Waits for them, and drops them.
  void drop_gather();

  /// A collective of the copy: the first process has the whole parameters in their own type, one after the other.
  void gather_on_first(distributed::ProcessGroup& copy);

  /// Passes compute with the parameters' own types from here on.
  void keep_types();
  /// Of parameters on the meta device, which no gather gives their type.
  void set_types(Form form);
  /// The type that a parameter has in a pass.
  c10::ScalarType type_in_pass(std::size_t i) const;

 private:
  struct Single;  // a large parameter, which is sent from where it is and received where it will be
  struct Packed;  // small ones of one type, and of one type in a pass

  const at::Tensor& whole(std::size_t i) const { return parameters_[i].whole.tensor; }
  std::int64_t elements_of(std::size_t i, int process) const;
  void make_shards();
  void begin_as_rows();
  void make_gradients();
  void take_form(Form form);
  at::Tensor sent_of(const at::Tensor& mine, std::size_t i) const;
  void give_room();
  void make_room(const Single& single);
  void land_singles();
  static void land(Packed& packed);
  void place_rows(const Packed& packed) const;

  std::vector<Parameter> parameters_;
  std::vector<at::Tensor> shards_;
  std::vector<Single> singles_;
  std::vector<Packed> packed_;
  RowGradients gradients_;
  ShardPlace place_;
  WeightMemory* memory_;
  Form form_ = Form::kExact;
  bool is_whole_ = true, is_gathering_ = false;
};

}  // namespace runner::train

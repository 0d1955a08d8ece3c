#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/model/placement.h"
#include "components/tensor/tensors.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/placement/part_reader.h"

namespace runner::train {

/// The weights of a model whose blocks have places. Those of a block that rests elsewhere have no memory of their own:
/// they get some of a room for two blocks as the block is entered, where they are read ahead of their use, and lose it
/// as it is left. They keep their versions, so a graph that saved them stays valid.
class TravellingWeights final : public components::model::Placement {
 public:
  /// `model`: whose travelling parameters have no memory, and whose other tensors are where they belong.
  TravellingWeights(const components::model::Model& model, BlockPlaces places);
  ~TravellingWeights() override;

  c10::Device device_of(std::size_t block) const override { return places_.device_of(block); }
  c10::Device main_device() const override { return places_.main; }
  void enter(std::size_t block) override;
  void leave(std::size_t block) override;
  void linger(std::size_t block) override { lingering_ = block; }
  /// The same around the backward pass of a block, whose next one is the one before it.
  void enter_backward(std::size_t block);
  void leave_backward(std::size_t block) { leave(block); }

  const BlockPlaces& places() const { return places_; }
  /// Whether a parameter is one of those.
  bool has(const std::string& parameter) const { return by_name_.contains(parameter); }
  /// How a file fills them: to be added to `access`.
  void add_to(checkpoint::WeightAccess& access);
  /// Names of those that were given no file and no numbers.
  std::vector<std::string> unfilled() const;

 private:
  struct Weight {
    components::NamedTensor parameter;
    std::size_t offset = 0, bytes = 0;             // in a room
    std::vector<checkpoint::FilePart> parts = {};  // on the disk
    at::Tensor rest = {};                          // in the memory of the CPU
    bool is_filled = false;
  };
  struct Block {
    std::vector<Weight> weights;
    std::size_t bytes = 0;
    bool on_disk = false;
  };
  /// Memory for one block where it computes.
  struct Room {
    at::Tensor memory, read_into = {};  // bytes; the second of the CPU, where the first is elsewhere
    std::optional<std::size_t> holds = {};
    int inside = 0;  // passes of the block that have begun
  };

  void enter(std::size_t block, std::optional<std::size_t> next);
  std::optional<std::size_t> travelling_after(std::size_t block) const;
  std::optional<std::size_t> travelling_before(std::size_t block) const;
  Room* room_of(std::size_t block);
  Room& free_room(std::size_t block);
  void begin_fetch(std::size_t block, Room& room);
  void end_fetch();
  void give(const Block& block, Room& room) const;
  void take(const Block& block) const;
  std::vector<at::Tensor> views(const Block& block, const at::Tensor& memory) const;

  BlockPlaces places_;
  std::map<std::size_t, Block> blocks_;  // those that travel
  std::map<std::string, std::pair<std::size_t, std::size_t>> by_name_;
  std::vector<std::unique_ptr<Room>> rooms_;
  std::unique_ptr<PartReader> reader_;  // null: nothing is on the disk
  Room* fetching_ = nullptr;            // what is being read
  std::optional<std::size_t> lingering_ = {};
};

}  // namespace runner::train

#include "runner/train/placement/travelling_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "components/block/block.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

using resolve::placement::Device;

constexpr std::size_t kRooms = 2;     // the block that computes, and the next one
constexpr std::size_t kAligned = 64;  // of a weight in a room
constexpr std::size_t kRoomAligned = 4096;

std::size_t aligned(std::size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

at::Tensor bytes_on(const c10::Device& device, std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes + kRoomAligned)}, at::TensorOptions(at::kByte).device(device));
}

}  // namespace

TravellingWeights::TravellingWeights(const components::model::Model& model, BlockPlaces places)
    : places_(std::move(places)) {
  for (std::size_t i = 0; i < model.blocks().size(); ++i) {
    if (!places_.travels(i)) continue;
    Block block;
    block.on_disk = places_.of_block[i] == Device::disk();
    for (const components::NamedTensor& parameter : model.blocks()[i]->parameters()) {
      if (!places_.travelling.contains(parameter.name)) continue;
      const auto bytes = static_cast<std::size_t>(parameter.tensor.numel()) * parameter.tensor.element_size();
      by_name_.emplace(parameter.name, std::pair(i, block.weights.size()));
      block.weights.push_back({parameter, block.bytes, bytes});
      if (!block.on_disk) {
        block.weights.back().rest =
            at::empty(parameter.tensor.sizes(), parameter.tensor.options().device(at::kCPU).requires_grad(false));
      }
      block.bytes += aligned(bytes);
    }
    if (block.on_disk && reader_ == nullptr) reader_ = std::make_unique<PartReader>();
    if (!block.weights.empty()) blocks_.emplace(i, std::move(block));
  }
}

TravellingWeights::~TravellingWeights() = default;

std::vector<std::string> TravellingWeights::unfilled() const {
  std::vector<std::string> names;
  for (const auto& [number, block] : blocks_) {
    for (const Weight& weight : block.weights) {
      if (!weight.is_filled) names.push_back(weight.parameter.name);
    }
  }
  return names;
}

void TravellingWeights::add_to(checkpoint::WeightAccess& access) {
  const auto weight_of = [this](const std::string& name) -> Weight* {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &blocks_.at(at->second.first).weights[at->second.second];
  };
  access.stays = [this](const std::string& name) {
    const auto at = by_name_.find(name);
    return at != by_name_.end() && blocks_.at(at->second.first).on_disk;
  };
  access.stay = [weight_of](const std::string& name, std::vector<checkpoint::FilePart> parts) {
    Weight& weight = *weight_of(name);
    weight.parts = std::move(parts);
    weight.is_filled = true;
  };
  access.in_place_of = [weight_of](const std::string& name) -> const at::Tensor* {
    Weight* const weight = weight_of(name);
    if (weight == nullptr || !weight->rest.defined()) return nullptr;
    weight->is_filled = true;
    return &weight->rest;
  };
}

std::optional<std::size_t> TravellingWeights::travelling_after(std::size_t block) const {
  const auto at = blocks_.upper_bound(block);
  // In the next pass the first one comes again; a backward pass is told of by itself.
  return at != blocks_.end() ? at->first : blocks_.begin()->first;
}

std::optional<std::size_t> TravellingWeights::travelling_before(std::size_t block) const {
  const auto at = blocks_.lower_bound(block);
  if (at == blocks_.begin()) return std::nullopt;  // what comes next is a forward pass, of the first one again
  return std::prev(at)->first;
}

void TravellingWeights::enter(std::size_t block) {
  // The last of a training's forward pass is the first of its backward pass.
  const bool turns = c10::GradMode::is_enabled() && !blocks_.empty() && block >= blocks_.rbegin()->first;
  enter(block, turns || blocks_.empty() ? std::nullopt : travelling_after(block));
}

void TravellingWeights::enter_backward(std::size_t block) { enter(block, travelling_before(block)); }

void TravellingWeights::enter(std::size_t block, std::optional<std::size_t> next) {
  if (lingering_ && *lingering_ != block) leave(*std::exchange(lingering_, std::nullopt));
  const auto at = blocks_.find(block);
  if (at == blocks_.end()) return;
  if (room_of(block) == nullptr) {
    end_fetch();
    if (room_of(block) == nullptr) begin_fetch(block, free_room(block));
  }
  Room& room = *room_of(block);
  if (fetching_ == &room) end_fetch();
  if (room.inside++ == 0) give(at->second, room);
  if (!next || *next == block || room_of(*next) != nullptr) return;
  end_fetch();
  Room& other = free_room(*next);
  begin_fetch(*next, other);
}

void TravellingWeights::leave(std::size_t block) {
  const auto at = blocks_.find(block);
  if (at == blocks_.end()) return;
  Room* const room = room_of(block);
  if (room != nullptr && room->inside > 0 && --room->inside == 0) take(at->second);
}

TravellingWeights::Room* TravellingWeights::room_of(std::size_t block) {
  for (const auto& room : rooms_) {
    if (room->holds == block) return room.get();
  }
  return nullptr;
}

/// One that no pass is in; of several the one that was filled first.
TravellingWeights::Room& TravellingWeights::free_room(std::size_t block) {
  std::size_t largest = 0;
  for (const auto& [number, one] : blocks_) largest = std::max(largest, one.bytes);
  const auto is_free = [](const auto& room) { return room->inside == 0; };
  auto at = std::find_if(rooms_.begin(), rooms_.end(), is_free);
  if (at == rooms_.end() || (rooms_.size() < kRooms && (*at)->holds)) {
    rooms_.push_back(std::make_unique<Room>(Room{bytes_on(places_.device_of(block), largest)}));
    return *rooms_.back();
  }
  std::rotate(at, std::next(at), rooms_.end());  // it is the last one to be filled again
  return *rooms_.back();
}

std::vector<at::Tensor> TravellingWeights::views(const Block& block, const at::Tensor& memory) const {
  std::vector<at::Tensor> views;
  for (const Weight& weight : block.weights) {
    const at::Tensor bytes =
        memory.narrow(0, static_cast<std::int64_t>(weight.offset), static_cast<std::int64_t>(weight.bytes));
    views.push_back(bytes.view(weight.parameter.tensor.scalar_type()).view(weight.parameter.tensor.sizes()));
  }
  return views;
}

void TravellingWeights::begin_fetch(std::size_t number, Room& room) {
  const c10::NoGradGuard no_grad;
  const Block& block = blocks_.at(number);
  room.holds = number;
  if (!block.on_disk) {
    const std::vector<at::Tensor> here = views(block, room.memory);
    for (std::size_t i = 0; i < here.size(); ++i) here[i].copy_(block.weights[i].rest, /*non_blocking=*/true);
    return;
  }
  if (!room.memory.is_cpu() && !room.read_into.defined()) {
    room.read_into = at::empty(room.memory.sizes(), at::TensorOptions(at::kByte));
  }
  const std::vector<at::Tensor> filled = views(block, room.memory.is_cpu() ? room.memory : room.read_into);
  PartsToRead parts;
  for (std::size_t i = 0; i < filled.size(); ++i) parts.tensors.push_back({filled[i], block.weights[i].parts});
  fetching_ = &room;
  try {
    reader_->begin(std::move(parts));
  } catch (...) {
    fetching_ = nullptr;
    room.holds.reset();
    throw;
  }
}

void TravellingWeights::end_fetch() {
  if (fetching_ == nullptr) return;
  Room& room = *std::exchange(fetching_, nullptr);
  try {
    reader_->wait();
  } catch (...) {
    room.holds.reset();
    throw;
  }
  const c10::NoGradGuard no_grad;
  if (!room.memory.is_cpu()) room.memory.copy_(room.read_into);
}

void TravellingWeights::give(const Block& block, Room& room) const {
  auto* const start = static_cast<char*>(room.memory.mutable_data_ptr());
  for (const Weight& weight : block.weights) {
    const c10::Storage& storage = weight.parameter.tensor.storage();
    storage.set_data_ptr_noswap(c10::DataPtr(start + weight.offset, weight.parameter.tensor.device()));
    storage.set_nbytes(weight.bytes);
  }
}

void TravellingWeights::take(const Block& block) const {
  for (const Weight& weight : block.weights) {
    const c10::Storage& storage = weight.parameter.tensor.storage();
    storage.set_data_ptr_noswap(c10::DataPtr(nullptr, weight.parameter.tensor.device()));
    storage.set_nbytes(0);
  }
}

}  // namespace runner::train

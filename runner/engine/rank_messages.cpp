#include "runner/engine/rank_messages.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::engine {
namespace {

class Packer {
 public:
  explicit Packer(std::string& bytes) : bytes_(bytes) {}

  template <typename Value>
  void operator()(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>, "it is copied as bytes");
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) { list(text); }
  template <typename Item>
  void operator()(const std::vector<Item>& items) {
    list(items);
  }

 private:
  template <typename List>
  void list(const List& items) {
    (*this)(items.size());
    bytes_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(*items.data()));
  }

  std::string& bytes_;
};

class Unpacker {
 public:
  Unpacker(const std::string& bytes, std::size_t& at) : bytes_(bytes), at_(at) {}

  template <typename Value>
  void operator()(Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>, "it is copied as bytes");
    take(&value, sizeof value);
  }
  void operator()(std::string& text) { list(text); }
  template <typename Item>
  void operator()(std::vector<Item>& items) {
    list(items);
  }

 private:
  template <typename List>
  void list(List& items) {
    std::size_t size = 0;
    (*this)(size);
    RUNNER_ASSERT(size <= bytes_.size(), "a rank of the same program sent it");
    items.resize(size);
    take(items.data(), size * sizeof(*items.data()));
  }
  void take(void* to, std::size_t size) {
    RUNNER_ASSERT(size <= bytes_.size() - at_, "a rank of the same program sent it");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  const std::string& bytes_;
  std::size_t& at_;
};

/// Calls `pack` with each member that is sent.
template <typename Pack, typename OfPrediction>
void each_of_prediction(Pack& pack, OfPrediction& prediction) {
  pack(prediction.index);
  pack(prediction.kind);
  pack(prediction.predicted);
  pack(prediction.target);
  pack(prediction.probability);
  pack(prediction.probabilities);
  pack(prediction.classes);
  pack(prediction.target_classes);
  pack(prediction.values);
  pack(prediction.targets);
  pack(prediction.shape);
  pack(prediction.whole);
  pack(prediction.tokens);
  pack(prediction.loss);
}

template <typename Pack, typename OfGenerated>
void each_of_generated(Pack& pack, OfGenerated& generated) {
  pack(generated.prompt);
  pack(generated.sample);
  pack(generated.text);
  pack(generated.tokens);
  pack(generated.logprobs);
  pack(generated.finish_reason);
}

}  // namespace

void send_bytes(distributed::ProcessGroup& ranks, int to, const std::string& bytes, const char* site) {
  const at::Tensor size = at::empty({1}, at::kLong);
  *size.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(bytes.size());
  ranks.send(size, to, site);
  const at::Tensor content = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(content.mutable_data_ptr(), bytes.data(), bytes.size());
  ranks.send(content, to, site);
}

std::string receive_bytes(distributed::ProcessGroup& ranks, int from, const char* site) {
  const at::Tensor size = at::empty({1}, at::kLong);
  ranks.receive(size, from, site);
  const at::Tensor content = at::empty({size.item<std::int64_t>()}, at::kByte);
  ranks.receive(content, from, site);
  return {static_cast<const char*>(content.const_data_ptr()), static_cast<std::size_t>(content.numel())};
}

void append(std::string& bytes, const Prediction& prediction) {
  Packer pack(bytes);
  each_of_prediction(pack, prediction);
}

Prediction prediction_at(const std::string& bytes, std::size_t& at) {
  Prediction prediction;
  Unpacker unpack(bytes, at);
  each_of_prediction(unpack, prediction);
  return prediction;
}

void append(std::string& bytes, const Generated& generated) {
  Packer pack(bytes);
  each_of_generated(pack, generated);
}

Generated generated_at(const std::string& bytes, std::size_t& at) {
  Generated generated;
  Unpacker unpack(bytes, at);
  each_of_generated(unpack, generated);
  return generated;
}

}  // namespace runner::engine

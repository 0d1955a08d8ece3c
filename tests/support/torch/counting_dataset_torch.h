#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "components/data/data.h"
#include "components/tensor/tensors.h"

namespace tests {

/// Another data set. Each batch that it hands out is first shown to `seen` with its number, from 1, and may be changed.
class CountingDataset final : public components::data::Dataset {
 public:
  using Seen = std::function<void(int number, components::TensorMap& batch)>;

  CountingDataset(std::shared_ptr<Dataset> inner, Seen seen) : inner_(std::move(inner)), seen_(std::move(seen)) {}
  const components::BatchSpec& signature() const override { return inner_->signature(); }
  std::int64_t size() const override { return inner_->size(); }
  std::string describe() const override { return inner_->describe(); }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override {
    inner_->fetch(indices, batch);
    seen_(++read_, batch);
  }
  int read() const { return read_; }  ///< batches so far

 private:
  std::shared_ptr<Dataset> inner_;
  Seen seen_;
  mutable int read_ = 0;
};

}  // namespace tests

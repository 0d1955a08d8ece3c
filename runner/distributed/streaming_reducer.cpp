#include "runner/distributed/streaming_reducer.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace runner::distributed {
namespace {

std::vector<std::size_t> backwards(const std::vector<at::Tensor>& parameters) {
  std::vector<std::size_t> places;
  for (std::size_t i = parameters.size(); i > 0; --i) {
    if (parameters[i - 1].requires_grad()) places.push_back(i - 1);
  }
  return places;
}

std::vector<at::Tensor> chosen(const std::vector<at::Tensor>& parameters, const std::vector<std::size_t>& places) {
  std::vector<at::Tensor> tensors;
  for (const std::size_t place : places) tensors.push_back(parameters[place]);
  return tensors;
}

}  // namespace

struct StreamingReducer::Bucket {
  std::vector<std::size_t> members;   // among parameters_
  std::size_t missing = 0;            // gradients missing in this pass
  at::Tensor flat;                    // allocated from the first arrival until all are delivered
  std::vector<at::Tensor> gradients;  // parts of it, by member; then the number of ranks with a gradient for each
};

StreamingReducer::StreamingReducer(CommHook& comm_hook, const std::vector<at::Tensor>& parameters,
                                   std::int64_t bucket_bytes)
    : comm_hook_(comm_hook),
      parameters_(chosen(parameters, backwards(parameters))),
      places_(backwards(parameters)),
      index_of_(parameters.size()),
      assignment_(parameters_, bucket_bytes),
      buckets_(assignment_.floats.size()) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    index_of_[places_[i]] = i;
    buckets_[assignment_.parts[i].bucket].members.push_back(i);
  }
}

StreamingReducer::~StreamingReducer() = default;

void StreamingReducer::begin(Receive receive) {
  receive_ = std::move(receive);
  next_ = 0;
  used_.assign(index_of_.size(), false);
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.members.size();
    bucket.gradients.clear();  // of a failed pass
    bucket.flat.reset();
  }
}

void StreamingReducer::open(Bucket& bucket, std::size_t number) {
  if (bucket.flat.defined()) return;
  const auto members = static_cast<std::int64_t>(bucket.members.size());
  const auto options = at::TensorOptions(at::kFloat).device(parameters_[bucket.members.front()].device());
  bucket.flat = at::zeros({assignment_.floats[number] + members}, options);
  for (const std::size_t i : bucket.members) {
    bucket.gradients.push_back(view_of(bucket.flat, assignment_.parts[i], parameters_[i]));
  }
  bucket.gradients.push_back(bucket.flat.narrow(0, assignment_.floats[number], members));
}

void StreamingReducer::mark_ready(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  const std::size_t i = index_of_[parameter], number = assignment_.parts[i].bucket;
  Bucket& bucket = buckets_[number];
  open(bucket, number);
  const std::size_t member = i - bucket.members.front();  // a bucket's are consecutive
  at::Tensor& gradient = parameters_[i].mutable_grad();
  bucket.gradients[member].copy_(gradient);
  gradient.reset();
  bucket.gradients.back().narrow(0, static_cast<std::int64_t>(member), 1).fill_(1.0);
  --bucket.missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) launch_next();
}

/// The next bucket, once the previous one is delivered: only one is in flight.
void StreamingReducer::launch_next() {
  deliver();
  Bucket& bucket = buckets_[next_];
  open(bucket, next_);
  comm_hook_.launch(bucket.flat, bucket.gradients);
  in_flight_ = true;
  ++next_;
}

void StreamingReducer::deliver() {
  if (!in_flight_) return;
  comm_hook_.wait();
  in_flight_ = false;
  Bucket& bucket = buckets_[next_ - 1];
  const at::Tensor counts = bucket.gradients.back().cpu();
  const float* ranks_with_gradient = counts.const_data_ptr<float>();
  for (std::size_t member = 0; member < bucket.members.size(); ++member) {
    if (ranks_with_gradient[member] <= 0) continue;
    const std::size_t i = bucket.members[member];
    used_[places_[i]] = true;
    receive_(places_[i], bucket.gradients[member].to(parameters_[i].scalar_type()));
  }
  bucket.gradients.clear();
  bucket.flat.reset();
}

std::vector<bool> StreamingReducer::finish() {
  const at::NoGradGuard no_grad;
  while (next_ < buckets_.size()) launch_next();
  deliver();
  return used_;
}

}  // namespace runner::distributed

#include "tests/support/torch/pretended_streams.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_graph.h"
#include "tests/support/torch/pretended_kernels.h"
#include "tests/support/torch/pretended_memory.h"

namespace tests::accelerator {
namespace {

using at::Tensor;

constexpr c10::StreamId kDefaultStream = 0;

thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kDevices> current_streams = {};

/// Each device has a default stream; the others have different numbers.
using StreamKey = std::pair<c10::DeviceIndex, c10::StreamId>;

StreamKey key_of(const c10::Stream& stream) { return {stream.device_index(), stream.id()}; }

/// The number of entries that a stream had ever queued at one moment.
struct Event {
  StreamKey stream = {0, kDefaultStream};
  std::int64_t position = 0;
};

/// A copy, or without tensors a wait for an event of another stream.
struct Entry {
  Tensor from, to;
  Event event = {};

  bool touches(const Tensor& tensor) const {
    return to.defined() && (to.is_alias_of(tensor) || from.is_alias_of(tensor));
  }
};

class Streams {
 public:
  c10::StreamId add() { return ++last_; }

  void enqueue_copy(const StreamKey& stream, const Tensor& from, const Tensor& to) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    std::deque<Entry>& waiting = queues_[stream].waiting;
    const auto touches = [&to](const Entry& entry) { return entry.touches(to); };
    if (std::any_of(waiting.begin(), waiting.end(), touches)) run(mark(stream));
    poison(to);
    waiting.push_back({from, to});
    ++late_;
  }
  void enqueue_wait(const StreamKey& stream, const Event& event) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (!has_happened(event)) queues_[stream].waiting.push_back({{}, {}, event});
  }
  Event mark(const StreamKey& stream) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    const Queue& queue = queues_[stream];
    return {stream, queue.done + static_cast<std::int64_t>(queue.waiting.size())};
  }
  bool has_happened(const Event& event) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    return queues_[event.stream].done >= event.position;
  }
  /// Makes what was queued before the event. Waits point to the past, so they form no circle.
  void run(const Event& event) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    Queue& queue = queues_[event.stream];
    while (queue.done < event.position && !queue.waiting.empty()) {
      const Entry entry = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      ++queue.done;
      entry.to.defined() ? make(entry) : run(entry.event);
    }
  }
  void run_all(c10::DeviceIndex device) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    for (auto& [stream, queue] : queues_) {
      if (stream.first == device) run(mark(stream));
    }
  }
  std::int64_t late() const { return late_; }

 private:
  struct Queue {
    std::deque<Entry> waiting;
    std::int64_t done = 0;
  };

  static void make(const Entry& copy) {
    count_kernel();
    const at::AutoDispatchBelowAutograd below;
    as_cpu(copy.to).copy_(as_cpu(copy.from));
  }
  static void poison(const Tensor& tensor) {
    const Tensor bytes = as_cpu(tensor);
    if (bytes.is_contiguous()) std::memset(bytes.mutable_data_ptr(), 0xFF, bytes.nbytes());
  }

  std::recursive_mutex mutex_;
  std::map<StreamKey, Queue> queues_;
  std::atomic<c10::StreamId> last_{kDefaultStream};
  std::atomic<std::int64_t> late_{0};
};

Streams& streams() {
  static auto* const streams = new Streams;
  return *streams;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kKind; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kKind, current}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < kDevices, "there is no ", device);
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return stream_of(device, current_stream(index(device))); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, kDefaultStream); }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream_of(device, streams().add()); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    auto& place = current_streams.at(static_cast<std::size_t>(stream.device_index()));
    return stream_of(stream.device(), std::exchange(place, stream.id()));
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = streams().mark(key_of(stream));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void block(void* event, const c10::Stream& stream) const override {
    const auto* const made = static_cast<Event*>(event);
    if (made == nullptr) return;
    if (made->stream != key_of(stream)) refuse_while_captured(stream.device_index(), "a wait for another stream");
    streams().enqueue_wait(key_of(stream), *made);
  }
  void synchronizeEvent(void* event) const override {
    refuse_while_captured(current, "a wait for an event");
    if (const auto* const made = static_cast<Event*>(event)) streams().run(*made);
  }
  bool queryEvent(void* event) const override {
    const auto* const made = static_cast<Event*>(event);
    return made == nullptr || streams().has_happened(*made);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return streams().has_happened(streams().mark(key_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    refuse_while_captured(stream.device_index(), "a wait for a stream");
    streams().run(streams().mark(key_of(stream)));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    refuse_while_captured(device, "a wait for the device");
    streams().run_all(device);
  }
  void recordDataPtrOnStream(const c10::DataPtr& block, const c10::Stream& stream) const override {
    record_block(block.get(), stream.id());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

 private:
  static c10::DeviceIndex index(const c10::Device& device) { return device.has_index() ? device.index() : current; }
  static c10::Stream stream_of(const c10::Device& device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kKind, index(device)), id);
  }
};

}  // namespace

c10::DeviceIndex current_device() { return current; }

void set_current_device(c10::DeviceIndex device) { current = device; }

c10::StreamId current_stream(c10::DeviceIndex device) { return current_streams.at(static_cast<std::size_t>(device)); }

void enqueue_copy(c10::DeviceIndex device, const Tensor& from, const Tensor& to) {
  streams().enqueue_copy({device, current_stream(device)}, from, to);
}

void run_queued(c10::DeviceIndex device) { streams().run(streams().mark({device, current_stream(device)})); }

const c10::impl::DeviceGuardImplInterface& device_guard() {
  static const auto* const guard = new Guard;  // LibTorch keeps it
  return *guard;
}

std::int64_t late_copies() { return streams().late(); }

}  // namespace tests::accelerator

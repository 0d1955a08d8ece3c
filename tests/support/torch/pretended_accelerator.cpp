#include "tests/support/torch/pretended_accelerator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace tests::accelerator {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

constexpr auto kKind = c10::DeviceType::PrivateUse1;
constexpr const char* kName = "pretend";
constexpr int kDevices = 2;
constexpr std::size_t kPage = 4096, kArenaBytes = std::size_t{4} << 30;
constexpr std::int64_t kNoLimit = std::int64_t{1} << 31;

constexpr c10::StreamId kDefaultStream = 0;

thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kDevices> current_streams = {};

c10::StreamId current_stream(c10::DeviceIndex device) { return current_streams.at(static_cast<std::size_t>(device)); }

/// The memory of one device: address space of its own, handed out by the page. It is mapped twice: without access at
/// the device's addresses, and with it where kernels look.
class Arena {
 public:
  Arena() {
    const int file = memfd_create(kName, MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, kArenaBytes) == 0, "no memory for a pretended device");
    begin_ = map(file, PROT_NONE);
    readable_ = map(file, PROT_READ | PROT_WRITE);
    close(file);
  }

  /// Null when nothing is left.
  char* take(std::size_t bytes) {
    std::size_t place = 0;
    for (const auto& [offset, size] : used_) {
      if (offset - place >= bytes) break;
      place = offset + size;
    }
    if (place + bytes > kArenaBytes) return nullptr;
    used_[place] = bytes;
    return begin_ + place;
  }
  std::size_t give_back(const char* block) {
    const auto found = used_.find(static_cast<std::size_t>(block - begin_));
    const std::size_t bytes = found->second;
    used_.erase(found);
    return bytes;
  }
  bool holds(const void* block) const { return block >= begin_ && block < begin_ + kArenaBytes; }
  /// Where kernels see this byte of the device.
  char* readable(const void* block) const { return readable_ + (static_cast<const char*>(block) - begin_); }

 private:
  static char* map(int file, int access) {
    void* const memory = mmap(nullptr, kArenaBytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(memory != MAP_FAILED, "no address space for a pretended device");
    return static_cast<char*>(memory);
  }

  char *begin_ = nullptr, *readable_ = nullptr;
  std::map<std::size_t, std::size_t> used_;  // offset and size
};

/// The streams that a block belongs to: a GPU's allocator hands a freed block out again in the order of these streams.
struct BlockStreams {
  std::set<c10::StreamId> known;  ///< it was allocated on, and recorded on
  std::set<c10::StreamId> used;
};

struct Memory {
  std::mutex mutex;
  std::map<const void*, BlockStreams> streams;
  std::int64_t unrecorded_uses = 0;
  std::array<Arena, kDevices> arenas;
  std::array<std::int64_t, kDevices> held = {};
  std::int64_t peak = 0, limit = kNoLimit;
};

Memory& memory() {
  static auto* const memory = new Memory;  // tensors outlive what is static
  return *memory;
}

/// Where kernels can read and write this memory, of a device or of the CPU.
char* readable(const void* block) {
  for (const Arena& arena : memory().arenas) {
    if (arena.holds(block)) return arena.readable(block);
  }
  return static_cast<char*>(const_cast<void*>(block));
}

void release(void* block) {
  if (block == nullptr) return;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  for (std::size_t device = 0; device < kDevices; ++device) {
    Arena& arena = memory().arenas[device];
    if (arena.holds(block))
      memory().held[device] -= static_cast<std::int64_t>(arena.give_back(static_cast<char*>(block)));
  }
  const BlockStreams streams = memory().streams.extract(block).mapped();
  if (!std::includes(streams.known.begin(), streams.known.end(), streams.used.begin(), streams.used.end())) {
    ++memory().unrecorded_uses;
  }
}

void record_block(const void* block, c10::StreamId stream) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  if (const auto found = memory().streams.find(block); found != memory().streams.end()) {
    found->second.known.insert(stream);
  }
}

/// A kernel of the current stream reads or writes this tensor.
void note_use(const Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != kKind || !tensor.has_storage()) return;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto found = memory().streams.find(tensor.storage().data());
  if (found != memory().streams.end()) found->second.used.insert(current_stream(tensor.device().index()));
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(kKind, current);
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
    char* const block = take(pages, static_cast<std::size_t>(current));
    std::memset(readable(block), 0xFF, pages);  // what is read before it is written becomes NaN
    return {block, block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(readable(to), readable(from), bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& block, c10::Stream stream) override { record_block(block.get(), stream.id()); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

 private:
  static char* take(std::size_t bytes, std::size_t device) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> lock(m.mutex);
    const std::int64_t held = m.held[device] + static_cast<std::int64_t>(bytes);
    char* const block = held <= m.limit ? m.arenas[device].take(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, kName, " out of memory. Tried to allocate ", bytes,
                     " bytes beside ", m.held[device], "; the limit is ", m.limit);
    m.streams[block] = {{current_stream(static_cast<c10::DeviceIndex>(device))}, {}};
    m.held[device] = held;
    m.peak = std::max(m.peak, held);
    return block;
  }
};

Allocator& allocator() {
  static auto* const allocator = new Allocator;
  return *allocator;
}

/// Page-locked memory of the CPU: ordinary memory that is known to be it.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const block = bytes == 0 ? nullptr : std::malloc(bytes);
    const std::lock_guard<std::mutex> lock(mutex());
    if (block != nullptr) blocks()[static_cast<char*>(block)] = bytes;
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  static bool holds(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex());
    const auto after = blocks().upper_bound(static_cast<const char*>(address));
    if (after == blocks().begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return static_cast<const char*>(address) < begin + bytes;
  }

 private:
  static void release(void* block) {
    const std::lock_guard<std::mutex> lock(mutex());
    blocks().erase(static_cast<char*>(block));
    std::free(block);
  }
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::map<const char*, std::size_t>& blocks() {
    static auto* const blocks = new std::map<const char*, std::size_t>;
    return *blocks;
  }
};

PinnedAllocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

/// The CPU's view of a tensor.
Tensor as_cpu(const Tensor& tensor) {
  if (tensor.device().type() != kKind) return tensor;
  const auto options = at::TensorOptions(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(readable(tensor.mutable_data_ptr()), tensor.sizes(), tensor.strides(), options);
}

// Streams. The default stream of a device runs at once. On another one a copy that need not block is late: it is made
// when something waits for it, and until then its target holds NaN.

struct LateCopy {
  Tensor from, to;
};

class Streams {
 public:
  c10::StreamId add() { return ++last_; }

  void enqueue(c10::StreamId stream, const Tensor& from, const Tensor& to) {
    poison(to);
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    queues_[stream].waiting.push_back({from, to});
    ++late_;
  }
  /// The number of copies that were ever queued: what an event of now waits for.
  std::int64_t position(c10::StreamId stream) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    const Queue& queue = queues_[stream];
    return queue.done + static_cast<std::int64_t>(queue.waiting.size());
  }
  bool has_reached(c10::StreamId stream, std::int64_t position) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    return queues_[stream].done >= position;
  }
  void run(c10::StreamId stream, std::int64_t position) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    for (Queue& queue = queues_[stream]; queue.done < position && !queue.waiting.empty(); ++queue.done) {
      const LateCopy copy = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      const at::AutoDispatchBelowAutograd below;
      as_cpu(copy.to).copy_(as_cpu(copy.from));
    }
  }
  void run_all() {
    for (c10::StreamId stream = last_; stream > kDefaultStream; --stream) run(stream, position(stream));
  }
  std::int64_t late() const { return late_; }

 private:
  struct Queue {
    std::deque<LateCopy> waiting;
    std::int64_t done = 0;
  };

  static void poison(const Tensor& tensor) {
    const Tensor bytes = as_cpu(tensor);
    if (bytes.is_contiguous()) std::memset(bytes.mutable_data_ptr(), 0xFF, bytes.nbytes());
  }

  std::recursive_mutex mutex_;
  std::map<c10::StreamId, Queue> queues_;
  std::atomic<c10::StreamId> last_{kDefaultStream};
  std::atomic<std::int64_t> late_{0};
};

Streams& streams() {
  static auto* const streams = new Streams;
  return *streams;
}

/// The kernels of a stream run after what was queued on it.
void run_queued(c10::DeviceIndex device) {
  const c10::StreamId stream = current_stream(device);
  if (stream != kDefaultStream) streams().run(stream, streams().position(stream));
}

struct Event {
  c10::StreamId stream = kDefaultStream;
  std::int64_t position = 0;
};

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
    *static_cast<Event*>(*event) = {stream.id(), streams().position(stream.id())};
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void block(void* event, const c10::Stream&) const override { synchronizeEvent(event); }
  void synchronizeEvent(void* event) const override {
    if (const auto* const made = static_cast<Event*>(event)) streams().run(made->stream, made->position);
  }
  bool queryEvent(void* event) const override {
    const auto* const made = static_cast<Event*>(event);
    return made == nullptr || streams().has_reached(made->stream, made->position);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return streams().has_reached(stream.id(), streams().position(stream.id()));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    streams().run(stream.id(), streams().position(stream.id()));
  }
  void synchronizeDevice(const c10::DeviceIndex) const override { streams().run_all(); }
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

/// A generator of the CPU under the name of a device; the same seed gives other numbers than on the CPU.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kKind, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner_(at::detail::createCPUGenerator()) {}

  const at::Generator& inner() const { return inner_; }
  void set_current_seed(std::uint64_t seed) override {
    seed_ = seed;
    inner_.set_current_seed(seed * 0x9E37'79B9'7F4A'7C15ULL + 1);
  }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override {
    set_current_seed(inner_.seed());
    return seed_;
  }
  void set_offset(std::uint64_t) override { TORCH_CHECK(false, "no offset"); }
  std::uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl& state) override { inner_.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->inner_.set_state(inner_.get_state());
    return copy;
  }
  at::Generator inner_;
  std::uint64_t seed_ = c10::default_rng_seed_val;
};

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const std::array<at::Generator, kDevices> generators = {at::make_generator<Generator>(c10::DeviceIndex(0)),
                                                                 at::make_generator<Generator>(c10::DeviceIndex(1))};
  return generators.at(static_cast<std::size_t>(device < 0 ? current : device));
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current = device; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<Generator>(device < 0 ? current : device);
  }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* address) const override { return PinnedAllocator::holds(address); }
};

// An error on demand.

std::atomic<std::int64_t> kernels{0}, reads{0};
std::mutex error_mutex;
std::int64_t error_at = -1;
std::string error_text;

void count_kernel() {
  const std::int64_t now = ++kernels;
  const std::lock_guard<std::mutex> lock(error_mutex);
  if (error_at < 0 || now < error_at) return;
  error_at = -1;
  TORCH_CHECK(false, error_text);
}

// Kernels that cannot be copies of the CPU's.

bool is_ours(const Tensor& tensor) { return tensor.device().type() == kKind; }

/// The current device while an allocation is made.
c10::DeviceGuard guard_of(std::optional<at::Device> device) {
  return c10::DeviceGuard(device && device->has_index() ? *device : c10::Device(kKind, current));
}

Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>,
                           std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_generic(sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_strided_generic(
      sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), at::dtype_or_default(type));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  count_kernel();
  note_use(from);
  note_use(to);
  const c10::DeviceIndex device = is_ours(to) ? to.device().index() : from.device().index();
  const Tensor& other = is_ours(to) ? from : to;
  const bool may_be_late = non_blocking && (is_ours(other) || PinnedAllocator::holds(other.const_data_ptr()));
  if (may_be_late && current_stream(device) != kDefaultStream) {
    streams().enqueue(current_stream(device), from, to);
    return to;
  }
  run_queued(device);
  const at::AutoDispatchBelowAutograd below;
  as_cpu(to).copy_(as_cpu(from));
  return to;
}

const Tensor& resize(const Tensor& tensor, c10::SymIntArrayRef symbolic, std::optional<at::MemoryFormat>) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  auto* const impl = tensor.unsafeGetTensorImpl();
  if (impl->sizes() == sizes) return tensor;
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * tensor.element_size();
  if (impl->unsafe_storage().nbytes() < bytes) {
    const c10::DeviceGuard guard(tensor.device());
    impl->unsafe_storage().set_data_ptr_noswap(allocator().allocate(bytes));
    impl->unsafe_storage().set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
  return tensor;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  const at::AutoDispatchBelowAutograd below;
  to.resize_(from.sizes());
  as_cpu(to).copy_(as_cpu(from));
  return to;
}

at::Scalar local_scalar_dense(const Tensor& tensor) {
  count_kernel();
  ++reads;
  note_use(tensor);
  run_queued(tensor.device().index());
  return as_cpu(tensor).item();
}

Tensor as_strided(const Tensor& tensor, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                  std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(tensor, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           offset ? std::optional<std::int64_t>(offset->expect_int()) : std::nullopt);
}

Tensor view(const Tensor& tensor, c10::SymIntArrayRef sizes) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(sizes));
}

Tensor reshape_alias(const Tensor& tensor, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return as_strided(tensor, sizes, strides, tensor.sym_storage_offset());
}

/// As between the CPU and CUDA: parameters can move without being replaced.
bool has_compatible_shallow_copy_type(const Tensor&, const Tensor&) { return true; }

OptionalTensor on_cpu(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? OptionalTensor(tensor->cpu()) : std::nullopt;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, c10::SymIntArrayRef stride,
                   c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  count_kernel();
  return at::convolution_symint(input.cpu(), weight.cpu(), on_cpu(bias), stride, padding, dilation, transposed,
                                output_padding, std::move(groups))
      .to(input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input,
                                                        const Tensor& weight, c10::SymIntArrayRef stride,
                                                        c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                                                        bool transposed, c10::SymIntArrayRef output_padding,
                                                        c10::SymInt groups, std::array<bool, 3> mask) {
  count_kernel();
  const std::vector<c10::SymInt> bias = {weight.sym_size(transposed ? 1 : 0)};
  const auto [a, b, c] =
      at::convolution_backward_symint(gradient.cpu(), input.cpu(), weight.cpu(), c10::SymIntArrayRef(bias), stride,
                                      padding, dilation, transposed, output_padding, std::move(groups), mask);
  const auto back = [&input](const Tensor& tensor) { return tensor.defined() ? tensor.to(input.device()) : tensor; };
  return {back(a), back(b), back(c)};
}

/// Its schema does not say that it changes the running statistics, so the copies would be forgotten.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const OptionalTensor& weight,
                                              const OptionalTensor& bias, const OptionalTensor& mean,
                                              const OptionalTensor& variance, bool training, double momentum,
                                              double eps) {
  count_kernel();
  const OptionalTensor own_mean = on_cpu(mean), own_variance = on_cpu(variance);
  const auto [y, saved_mean, saved_scale] =
      at::native_batch_norm(input.cpu(), on_cpu(weight), on_cpu(bias), own_mean, own_variance, training, momentum, eps);
  if (training && own_mean) Tensor(*mean).copy_(*own_mean);
  if (training && own_variance) Tensor(*variance).copy_(*own_variance);
  const at::Device device = input.device();
  return {y.to(device), saved_mean.to(device), saved_scale.to(device)};
}

// All others: the CPU's, on copies.

/// A tensor that a kernel of `device` could not read, or undefined.
void refuse_other_device(const Tensor& tensor, std::optional<at::Device>& device, const c10::OperatorHandle& op) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
  note_use(tensor);
  if (!device) device = tensor.device();
  TORCH_CHECK(*device == tensor.device(), "Expected all tensors to be on the same device, but found at least two, ",
              *device, " and ", tensor.device(), ", in ", op.schema().name());
}

/// The device of the arguments, which have one in common.
at::Device common_device(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<at::Device> device;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) refuse_other_device(argument.toTensor(), device, op);
    if (argument.isTensorList()) {
      for (const Tensor& tensor : argument.toTensorVector()) refuse_other_device(tensor, device, op);
    }
    if (argument.isOptionalTensorList()) {
      for (const OptionalTensor& tensor : argument.toOptionalTensorVector()) {
        if (tensor) refuse_other_device(*tensor, device, op);
      }
    }
  }
  return device.value_or(c10::Device(kKind, current));
}

bool is_generator(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
}

/// The detour over the CPU resizes outputs that a device's kernel would make itself; LibTorch warns of that.
class NoWarnings final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void run_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static NoWarnings none;
  const c10::WarningUtils::WarningHandlerGuard quiet(&none);
  count_kernel();
  const auto& declared = op.schema().arguments();
  const at::Device device = common_device(op, torch::jit::last(*stack, declared.size()));
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!is_generator(declared[i].type())) continue;
    c10::IValue& given = torch::jit::peek(*stack, i, declared.size());
    const at::Generator own = given.isNone() ? default_generator(device.index()) : given.toGenerator();
    if (const auto* const ours = dynamic_cast<const Generator*>(own.unsafeGetGeneratorImpl())) given = ours->inner();
  }
  const c10::DeviceGuard guard(device.is_cpu() ? c10::Device(kKind, current) : device);
  run_queued(current);
  at::native::cpu_fallback(op, stack);
}

/// What LibTorch's autocast does on a GPU.
void register_autocast(torch::Library& m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FLOAT)
#undef LOWER
#undef FLOAT
}

class Backend {
 public:
  Backend()
      : all_(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__),
        aten_(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__),
        all_autocast_(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__),
        autocast_(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__) {
    c10::register_privateuse1_backend(kName);
    at::RegisterPrivateUse1HooksInterface(&hooks_);
    c10::SetAllocator(kKind, &allocator());
    c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kKind)].store(&guard_);
    all_.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
    aten_.impl("empty.memory_format", &empty_memory_format);
    aten_.impl("empty_strided", &empty_strided);
    aten_.impl("_copy_from", &copy_from);
    aten_.impl("_copy_from_and_resize", &copy_from_and_resize);
    aten_.impl("_local_scalar_dense", &local_scalar_dense);
    aten_.impl("as_strided", &as_strided);
    aten_.impl("view", &view);
    aten_.impl("_reshape_alias", &reshape_alias);
    aten_.impl("resize_", &resize);
    aten_.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
    aten_.impl("convolution_overrideable", &convolution);
    aten_.impl("convolution_backward_overrideable", &convolution_backward);
    aten_.impl("native_batch_norm", &batch_norm);
    // What LibTorch composes of views for devices without a kernel of their own does not take every order in memory.
    for (const char* name : {"native_group_norm", "native_layer_norm"}) {
      aten_.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
    }
    all_autocast_.fallback(torch::CppFunction::makeFallthrough());
    register_autocast(autocast_);
  }

 private:
  Hooks hooks_;
  Guard guard_;
  torch::Library all_, aten_, all_autocast_, autocast_;
};

}  // namespace

void install() {
  [[maybe_unused]] static const auto* const backend = new Backend;  // LibTorch keeps its parts
}

void set_memory_limit(std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  memory().limit = bytes > 0 ? bytes : kNoLimit;
  memory().peak = *std::max_element(memory().held.begin(), memory().held.end());
}

std::int64_t memory_held() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().held[0] + memory().held[1];
}

std::int64_t memory_peak() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().peak;
}

std::int64_t kernels_run() { return kernels; }

std::int64_t values_read() { return reads; }

std::int64_t late_copies() { return streams().late(); }

std::int64_t unrecorded_uses() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().unrecorded_uses;
}

void fail_after(std::int64_t count, const std::string& error) {
  const std::lock_guard<std::mutex> lock(error_mutex);
  error_at = error.empty() ? -1 : kernels + count;
  error_text = error;
}

}  // namespace tests::accelerator

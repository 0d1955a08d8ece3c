#include "tests/support/torch/pretended_memory.h"

#include <ATen/Functions.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_streams.h"

namespace tests::accelerator {
namespace {

using at::Tensor;

constexpr std::size_t kPage = 4096, kArenaBytes = std::size_t{4} << 30;
constexpr std::int64_t kNoLimit = std::int64_t{1} << 31;

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
  /// The blocks that are handed out, with their sizes.
  std::map<const char*, std::size_t> blocks() const {
    std::map<const char*, std::size_t> blocks;
    for (const auto& [offset, size] : used_) blocks[begin_ + offset] = size;
    return blocks;
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
  std::int64_t peak = 0, largest = 0, limit = kNoLimit;
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

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(kKind, current_device());
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
    char* const block = take(pages, device.index());
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
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    Memory& m = memory();
    const std::lock_guard<std::mutex> lock(m.mutex);
    const std::int64_t total = std::min(m.limit, kBytes), held = m.held[static_cast<std::size_t>(device)];
    return {static_cast<std::size_t>(std::max<std::int64_t>(0, total - held)), static_cast<std::size_t>(total)};
  }

 private:
  static constexpr std::int64_t kBytes = 2'100'000'000;  // as the driver says that a device has

  static char* take(std::size_t bytes, c10::DeviceIndex index) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> lock(m.mutex);
    const auto device = static_cast<std::size_t>(index);
    const std::int64_t held = m.held[device] + static_cast<std::int64_t>(bytes);
    char* const block = held <= m.limit ? m.arenas[device].take(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, kName, " out of memory. Tried to allocate ", bytes,
                     " bytes beside ", m.held[device], "; the limit is ", m.limit);
    m.streams[block] = {{current_stream(index)}, {}};
    m.held[device] = held;
    m.peak = std::max(m.peak, held);
    m.largest = std::max(m.largest, static_cast<std::int64_t>(bytes));
    return block;
  }
};

/// Page-locked memory of the CPU: ordinary memory that is known to be it.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(!refuses, "CUDA error: out of memory");
    void* const block = bytes == 0 ? nullptr : std::malloc(bytes);
    const std::lock_guard<std::mutex> lock(mutex());
    if (block != nullptr) blocks()[static_cast<char*>(block)] = {bytes, std::this_thread::get_id()};
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  static bool holds(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex());
    const auto after = blocks().upper_bound(static_cast<const char*>(address));
    if (after == blocks().begin()) return false;
    const auto& [begin, block] = *std::prev(after);
    return static_cast<const char*>(address) < begin + block.bytes;
  }
  std::atomic<bool> refuses{false};
  static std::atomic<std::int64_t> frees_elsewhere;

 private:
  struct Block {
    std::size_t bytes = 0;
    std::thread::id owner = {};
  };

  static void release(void* block) {
    const std::lock_guard<std::mutex> lock(mutex());
    const auto found = blocks().find(static_cast<char*>(block));
    if (found != blocks().end()) {
      if (found->second.owner != std::this_thread::get_id()) ++frees_elsewhere;
      blocks().erase(found);
    }
    std::free(block);
  }
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::map<const char*, Block>& blocks() {
    static auto* const blocks = new std::map<const char*, Block>;
    return *blocks;
  }
};

std::atomic<std::int64_t> PinnedAllocator::frees_elsewhere{0};

PinnedAllocator& pinned() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

}  // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* const allocator = new Allocator;
  return *allocator;
}

c10::Allocator& pinned_allocator() { return pinned(); }

bool is_page_locked(const void* address) { return PinnedAllocator::holds(address); }

Tensor as_cpu(const Tensor& tensor) {
  if (tensor.device().type() != kKind) return tensor;
  const auto options = at::TensorOptions(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(readable(tensor.mutable_data_ptr()), tensor.sizes(), tensor.strides(), options);
}

void poison(const c10::Storage& storage) {
  if (storage.nbytes() > 0) std::memset(readable(storage.data()), 0xFF, storage.nbytes());
}

MemoryImage::MemoryImage(c10::DeviceIndex device) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const Arena& arena = memory().arenas[static_cast<std::size_t>(device)];
  for (const auto& [block, bytes] : arena.blocks()) {
    const char* const begin = arena.readable(block);
    blocks_[block].assign(begin, begin + bytes);
  }
}

void MemoryImage::restore() const {
  for (const auto& [block, bytes] : blocks_) std::memcpy(readable(block), bytes.data(), bytes.size());
}

void record_block(const void* block, c10::StreamId stream) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  if (const auto found = memory().streams.find(block); found != memory().streams.end()) {
    found->second.known.insert(stream);
  }
}

void note_use(const Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != kKind || !tensor.has_storage()) return;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto found = memory().streams.find(tensor.storage().data());
  if (found != memory().streams.end()) found->second.used.insert(current_stream(tensor.device().index()));
}

void set_memory_limit(std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  memory().limit = bytes > 0 ? bytes : kNoLimit;
  memory().peak = *std::max_element(memory().held.begin(), memory().held.end());
  memory().largest = 0;
}

std::int64_t memory_held() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().held[0] + memory().held[1];
}

std::int64_t memory_peak() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().peak;
}

std::int64_t largest_block() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().largest;
}

std::int64_t unrecorded_uses() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().unrecorded_uses;
}

std::int64_t page_locked_frees_elsewhere() { return PinnedAllocator::frees_elsewhere; }

void refuse_page_locked_memory(bool refuse) { pinned().refuses = refuse; }

}  // namespace tests::accelerator

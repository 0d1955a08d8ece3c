#include "components/ops/reused_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>

#include <cstddef>
#include <mutex>
#include <utility>

namespace components {

struct ReusedMemory::Kept {
  std::mutex mutex;  // what is lent may end on another thread
  c10::DataPtr data;
  std::size_t bytes = 0;
};

struct ReusedMemory::Lent {
  std::shared_ptr<Kept> kept;
  c10::DataPtr data;
  std::size_t bytes;

  static void end(void* context) {
    const std::unique_ptr<Lent> lent(static_cast<Lent*>(context));
    const std::lock_guard lock(lent->kept->mutex);
    lent->kept->data = std::move(lent->data);
    lent->kept->bytes = lent->bytes;
  }
};

ReusedMemory::ReusedMemory() : kept_(std::make_shared<Kept>()) {}
ReusedMemory::~ReusedMemory() = default;

at::Tensor ReusedMemory::matrix(std::int64_t rows, std::int64_t columns, c10::ScalarType type) {
  const std::size_t bytes = static_cast<std::size_t>(rows * columns) * c10::elementSize(type);
  auto lent = std::make_unique<Lent>(Lent{kept_, {}, bytes});
  {
    const std::lock_guard lock(kept_->mutex);
    if (kept_->bytes == bytes) lent->data = std::move(kept_->data);
    kept_->data.clear();
    kept_->bytes = 0;
  }
  if (lent->data.get() == nullptr) lent->data = c10::GetCPUAllocator()->allocate(bytes);
  const at::Tensor matrix = at::empty({0}, at::TensorOptions().dtype(type));
  void* data = lent->data.get();
  matrix.storage().set_data_ptr_noswap(c10::DataPtr(data, lent.release(), &Lent::end, c10::kCPU));
  matrix.storage().set_nbytes(bytes);
  matrix.unsafeGetTensorImpl()->set_sizes_contiguous({rows, columns});
  return matrix;
}

}  // namespace components

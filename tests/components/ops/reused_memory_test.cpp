#include "components/ops/reused_memory.h"

#include <ATen/core/Tensor.h>

#include <catch2/catch.hpp>
#include <memory>
#include <thread>

namespace components {

TEST_CASE("memory is lent again once nothing uses it, and to one tensor at a time", "[ops]") {
  auto memory = std::make_unique<ReusedMemory>();
  at::Tensor first = memory->matrix(3, 5, at::kFloat);
  CHECK(first.sizes() == at::IntArrayRef({3, 5}));
  CHECK(first.is_contiguous());
  first.fill_(2.0);
  const void* const where = first.const_data_ptr();
  at::Tensor second = memory->matrix(3, 5, at::kFloat);
  CHECK(second.const_data_ptr() != where);
  at::Tensor view = first.narrow(0, 1, 2);
  first.reset();
  std::thread([&] { view.reset(); }).join();
  first = memory->matrix(5, 3, at::kFloat);
  CHECK(first.const_data_ptr() == where);
  first.reset();
  CHECK(memory->matrix(4, 5, at::kFloat).numel() == 20);  // another size
  first = memory->matrix(3, 5, at::kFloat);
  memory.reset();
  first.fill_(3.0);
  CHECK(first.sum().item<float>() == 45.0F);
}

}  // namespace components

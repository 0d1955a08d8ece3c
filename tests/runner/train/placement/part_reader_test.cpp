#include "runner/train/placement/part_reader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "runner/core/error.h"
#include "tests/support/temp_dir.h"

namespace runner::train {
namespace {

using checkpoint::FilePart;

/// A file with some bytes before each tensor, so that none begins where a page does.
class Written {
 public:
  FilePart add(const at::Tensor& tensor, const std::string& dtype) {
    std::ofstream file(path(), std::ios::binary | std::ios::app);
    file << std::string(odd_, 'x');
    const auto offset = static_cast<std::int64_t>(file.tellp());
    file.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    return {path(),
            offset,
            static_cast<std::int64_t>(tensor.nbytes()),
            dtype,
            0,
            tensor.size(0),
            tensor.numel() / tensor.size(0),
            false};
  }
  std::string path() const { return dir_ / "weights"; }

 private:
  static constexpr std::size_t odd_ = 8 * 37;
  tests::TempDir dir_;
};

at::Tensor numbers(at::IntArrayRef shape, at::ScalarType type) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return at::arange(count, at::TensorOptions(at::kFloat)).remainder(251).div(16).view(shape).to(type);
}

TEST_CASE("parts of a file fill tensors of their type and of others", "[placement]") {
  Written file;
  PartReader reader;
  // Larger than what is read at once.
  const at::Tensor large = numbers({3, 1 << 20}, at::kFloat), low = numbers({5, 7}, at::kBFloat16),
                   half = numbers({40000, 3}, at::kHalf), joined = numbers({2, 7}, at::kBFloat16);
  const at::Tensor as_it_is = at::zeros({3, 1 << 20}), wider = at::zeros({7, 7}),
                   to_low = at::zeros({40000, 3}, at::kBFloat16);
  FilePart second = file.add(joined, "BF16");
  second.first_row = 5;
  reader.begin({{{as_it_is, {file.add(large, "F32")}},
                 {wider, {file.add(low, "BF16"), second}},
                 {to_low, {file.add(half, "F16")}}}});
  reader.wait();
  CHECK(at::equal(as_it_is, large));
  CHECK(at::equal(wider.narrow(0, 0, 5), low.to(at::kFloat)));
  CHECK(at::equal(wider.narrow(0, 5, 2), joined.to(at::kFloat)));
  CHECK(at::equal(to_low, half.to(at::kBFloat16)));
}

TEST_CASE("a part may be turned around, or of a stack of matrices", "[placement]") {
  Written file;
  PartReader reader;
  const at::Tensor turned = numbers({6, 4}, at::kFloat), first = numbers({3, 5}, at::kFloat),
                   second = numbers({3, 5}, at::kFloat).add(1);
  const at::Tensor whole = at::zeros({4, 6}), stack = at::zeros({2, 3, 5});
  FilePart part = file.add(turned, "F32"), below = file.add(second, "F32");
  part.transposed = true;
  below.first_row = 3;
  reader.begin({{{whole, {part}}, {stack, {file.add(first, "F32"), below}}}});
  reader.wait();
  CHECK(at::equal(whole, turned.t()));
  CHECK(at::equal(stack[0], first));
  CHECK(at::equal(stack[1], second));
}

TEST_CASE("a file that became shorter, or is gone, is an error that leaves the reader usable", "[placement]") {
  Written file, other;
  PartReader reader;
  const at::Tensor values = numbers({64, 64}, at::kFloat), target = at::zeros({64, 64});
  const FilePart part = file.add(values, "F32");
  std::filesystem::resize_file(file.path(), 1000);
  reader.begin({{{target, {part}}}});
  CHECK_THROWS_WITH(reader.wait(), Catch::Contains("is shorter than it was"));
  FilePart nowhere = part;
  nowhere.path += "-gone";
  CHECK_THROWS_WITH(reader.begin({{{target, {nowhere}}}}), Catch::Contains("cannot read"));
  reader.begin({{{target, {other.add(values, "F32")}}}});
  reader.wait();
  CHECK(at::equal(target, values));
}

}  // namespace
}  // namespace runner::train

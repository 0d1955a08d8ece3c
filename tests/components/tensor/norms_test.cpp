#include "components/tensor/norms.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "components/tensor/tensors.h"

namespace {

using components::norm_of_parts;
using components::vector_norm;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a norm is that of all elements, however many there are and whichever way they lie", "[norms]") {
  for (const std::int64_t size : {0, 1, 15, 16, 17, 1000, 65'536, 65'537, 300'001}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
      for (const double norm_type : {1.0, 2.0, 3.0, kInfinity}) {
        if (size == 0 && norm_type == kInfinity) continue;  // nothing is the largest of nothing
        DYNAMIC_SECTION(size << " of " << type << ", norm " << norm_type) {
          const at::Tensor tensor = at::randn({size, 3}).to(type).t();
          const double wanted = at::linalg_vector_norm(tensor.to(at::kDouble), norm_type).item<double>();
          const bool is_ours = norm_type == 2.0 && type == at::kFloat;  // LibTorch sums up in float32
          CHECK_THAT(vector_norm(tensor, norm_type), Catch::WithinRel(wanted, is_ours ? 1e-6 : 1e-3));
          const at::Tensor every_other = tensor.slice(1, 0, std::nullopt, 2);
          const double of_some = at::linalg_vector_norm(every_other.to(at::kDouble), norm_type).item<double>();
          CHECK_THAT(vector_norm(every_other, norm_type), Catch::WithinRel(of_some, 1e-3));
        }
      }
    }
  }
}

TEST_CASE("the Euclidean norm of float32 loses nothing on the way", "[norms]") {
  const at::Tensor tensor = at::randn({123'457});
  const double wanted = at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>();
  CHECK_THAT(vector_norm(tensor, 2.0), Catch::WithinRel(wanted, 1e-13));
  CHECK_THAT(vector_norm(tensor * 1e30, 2.0), Catch::WithinRel(wanted * 1e30, 1e-6));  // its squares fit no float32
  for (const double bad : {kInfinity, std::nan("")}) {
    const at::Tensor spoilt = tensor.clone();
    spoilt[77'777].fill_(bad);
    CHECK_FALSE(std::isfinite(vector_norm(spoilt, 2.0)));
  }
}

TEST_CASE("the number of threads changes no bit of a norm", "[norms]") {
  const at::Tensor tensor = at::randn({300'001});
  const int before = at::get_num_threads();
  const double norm = vector_norm(tensor, 2.0);
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    CHECK(vector_norm(tensor, 2.0) == norm);
  }
  at::set_num_threads(before);
}

TEST_CASE("the norm of a whole comes from those of its parts", "[norms]") {
  CHECK(norm_of_parts({}, 2.0) == 0.0);
  CHECK(norm_of_parts({}, kInfinity) == 0.0);
  CHECK(norm_of_parts({3.0, 4.0}, 2.0) == 5.0);
  CHECK(norm_of_parts({3.0, 4.0}, 1.0) == 7.0);
  CHECK(norm_of_parts({3.0, 4.0, 1.0}, kInfinity) == 4.0);
  CHECK(std::isnan(norm_of_parts({3.0, std::nan("")}, 2.0)));
  CHECK(std::isnan(norm_of_parts({3.0, std::nan("")}, kInfinity)));
}

#include "components/tensor/row_notes.h"

#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"

namespace components {
namespace {

using Numbers = std::vector<std::int64_t>;

/// A batch of two rows of these positions and this mask, with its notes.
TensorMap noted(const std::optional<Numbers>& positions, const std::optional<Numbers>& mask, bool one_shape = false) {
  TensorMap batch;
  if (positions) batch.set(kPositions, at::tensor(*positions, at::kLong).view({2, -1}));
  if (mask) batch.set(kAttentionMask, at::tensor(*mask, at::kLong).view({2, -1}).to(at::kBool));
  note_rows(batch, one_shape);
  return batch;
}

Numbers numbers(const at::Tensor* tensor) {
  if (tensor == nullptr) return {};
  const at::Tensor dense = tensor->to(at::kLong).contiguous();
  return {dense.const_data_ptr<std::int64_t>(), dense.const_data_ptr<std::int64_t>() + dense.numel()};
}

}  // namespace

TEST_CASE("documents of rows are counted, with the real positions", "[tensor][row_notes]") {
  const Numbers whole = {0, 1, 2, 3, 0, 1, 2, 3}, packed = {0, 1, 0, 1, 0, 0, 1, 2};
  const Numbers all = {1, 1, 1, 1, 1, 1, 1, 1}, before = {0, 0, 1, 1, 1, 1, 1, 0}, middle = {1, 0, 1, 1, 1, 1, 1, 1};
  struct Case {
    std::optional<Numbers> positions, mask;
    Numbers begins;
    std::int64_t longest;
    Numbers places;
  };
  const std::vector<Case> cases = {
      {{}, {}, {}, 0, {}},
      {whole, all, {}, 0, {}},
      {{}, Numbers{1, 1, 1, 0, 1, 1, 0, 0}, {}, 0, {}},  // padding behind changes nothing
      {packed, {}, {0, 2, 4, 5, 8}, 3, {}},
      {packed, all, {0, 2, 4, 5, 8}, 3, {}},
      {{}, before, {0, 2, 5}, 3, {2, 3, 4, 5, 6}},
      {packed, before, {0, 2, 3, 5}, 2, {2, 3, 4, 5, 6}},
      {{}, middle, {}, 0, {}},
      {packed, middle, {0, 1, 3, 4, 7}, 3, {0, 2, 3, 4, 5, 6, 7}},  // at the end of a document
      {{}, Numbers{0, 0, 0, 0, 1, 1, 1, 1}, {}, 0, {}},             // a row without any
      {{}, Numbers{0, 0, 0, 0, 0, 1, 1, 1}, {0, 3}, 3, {5, 6, 7}},
  };
  for (const Case& c : cases) {
    const TensorMap found = noted(c.positions, c.mask);
    CHECK(numbers(found.find(kDocumentBegins)) == c.begins);
    CHECK(numbers(found.find(kRealPlaces)) == c.places);
    if (!c.begins.empty()) CHECK(found.at(kLongestDocument).item<std::int64_t>() == c.longest);
  }
}

TEST_CASE("notes of one shape do not depend on the documents", "[tensor][row_notes]") {
  for (const Numbers& positions : {Numbers{0, 1, 2, 3, 0, 1, 2, 3}, Numbers{0, 1, 0, 1, 0, 0, 1, 2}}) {
    const TensorMap found = noted(positions, {}, true);
    const Numbers begins = numbers(found.find(kDocumentBegins));
    CHECK(begins.size() == 9);
    CHECK(begins.back() == 8);
    CHECK(found.at(kLongestDocument).item<std::int64_t>() == 4);
  }
  CHECK(noted({}, Numbers{0, 0, 1, 1, 1, 1, 1, 0}, true).find(kDocumentBegins) == nullptr);
}

}  // namespace components

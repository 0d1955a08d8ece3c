#include "runner/train/reference/reference_file.h"

#include <catch2/catch.hpp>

#include "runner/core/error.h"
#include "tests/support/temp_dir.h"

using Catch::Matchers::Contains;
using runner::train::read_reference;
using runner::train::ReferenceFigures;

TEST_CASE("figures of a reference are read for the same pairs and the same model", "[reference]") {
  const tests::TempDir folder;
  const std::string path = folder / "reference/train.safetensors";
  runner::train::write_reference(path, {"pairs", "model"}, ReferenceFigures{{-1.5F, -2.0F}, {-3.0F, -4.0F}});
  const ReferenceFigures figures = read_reference(path, {"pairs", "model"}, 2);
  CHECK(figures.chosen == std::vector<float>{-1.5F, -2.0F});
  CHECK(figures.rejected == std::vector<float>{-3.0F, -4.0F});
  CHECK_NOTHROW(read_reference(path, {"pairs", ""}, 2));
  CHECK_THROWS_WITH(read_reference(path, {"pairs", "another"}, 2), Contains("are of another model"));
  CHECK_THROWS_WITH(read_reference(path, {"others", "model"}, 2), Contains("are of other pairs"));
  CHECK_THROWS_WITH(read_reference(path, {"pairs", "model"}, 3), Contains("are of other pairs"));
}

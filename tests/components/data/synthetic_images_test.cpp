#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "tests/components/data/building.h"

using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

TEST_CASE("made-up images are the same every time, and others in another set", "[data][synthetic_images]") {
  const std::string recipe = "{type: synthetic_images, num_samples: 30}";
  const auto train = good_data(recipe);
  CHECK(train->size() == 30);
  CHECK(train->signature().at(components::kTarget).num_classes == 10);
  CHECK(train->signature().at(components::kInput).shape == std::vector<std::int64_t>{components::kBatch, 3, 32, 32});
  CHECK(train->describe() == "30 images of 3 x 32 x 32 in 10 classes");
  CHECK(fetched(*train, {3, 12, 29}, "target") == Values{3, 2, 9});
  const Values image = fetched(*train, {7}, "input");
  CHECK(image.size() == 3 * 32 * 32);
  CHECK(fetched(*train, {2, 7}, "input") != image);
  CHECK(fetched(*good_data(recipe), {7}, "input") == image);
  CHECK(fetched(*good_data(recipe, {.name = "val"}), {7}, "input") != image);
  CHECK(fetched(*good_data(recipe, {.seed = 1}), {7}, "input") != image);
  CHECK(fetched(*good_data("{type: synthetic_images, seed: 1337}", {.seed = 1}), {7}, "input") == image);
}

TEST_CASE("without noise and shift an image is the pattern of its class, in every set", "[data][synthetic_images]") {
  const std::string recipe =
      "{type: synthetic_images, num_classes: 2, channels: 1, height: 5, width: 4, noise: 0, shift: 0}";
  const auto train = good_data(recipe), val = good_data(recipe, {.name = "val"});
  CHECK(fetched(*train, {0}, "input") == fetched(*val, {2}, "input"));
  CHECK(fetched(*train, {1}, "input") == fetched(*train, {3}, "input"));
  CHECK(fetched(*train, {0}, "input") != fetched(*train, {1}, "input"));
}

TEST_CASE("a shifted image holds the same values", "[data][synthetic_images]") {
  const std::string recipe = "{type: synthetic_images, num_classes: 2, channels: 1, height: 3, width: 3, noise: 0, ";
  const auto sorted = [](Values values) {
    std::sort(values.begin(), values.end());
    return values;
  };
  const Values pattern = fetched(*good_data(recipe + "shift: 0}"), {0}, "input");
  const auto moved = good_data(recipe + "shift: 7}");
  bool any = false;
  for (std::int64_t i = 0; i < 20; i += 2) {
    const Values image = fetched(*moved, {i}, "input");
    CHECK(sorted(image) == sorted(pattern));
    any = any || image != pattern;
  }
  CHECK(any);
}

TEST_CASE("the noise of images has the deviation that was asked for", "[data][synthetic_images]") {
  const std::string recipe = "{type: synthetic_images, num_classes: 2, height: 64, width: 64, shift: 0, noise: ";
  const Values still = fetched(*good_data(recipe + "0}"), {0}, "input");
  const Values noisy = fetched(*good_data(recipe + "0.5}"), {0}, "input");
  double squares = 0;
  for (std::size_t i = 0; i < still.size(); ++i) squares += std::pow(noisy[i] - still[i], 2);
  CHECK(std::sqrt(squares / static_cast<double>(still.size())) == Approx(0.5).epsilon(0.03));
}

TEST_CASE("images that would fill the memory are refused", "[data][synthetic_images]") {
  const auto built =
      tests::build_data("{type: synthetic_images, num_classes: 1000, channels: 1024, height: 8192, width: 8192}");
  CHECK(built.data == nullptr);
  CHECK(built.messages.find("data.train would take ") != std::string::npos);
  CHECK(built.messages.find("hint: use fewer classes or smaller images") != std::string::npos);
}

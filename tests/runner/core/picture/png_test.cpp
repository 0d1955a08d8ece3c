#include "runner/core/picture/png.h"

#include <png.h>

#include <catch2/catch.hpp>
#include <random>

namespace {

struct Decoded {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

Decoded decoded(const std::string& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  CHECK(image.format == PNG_FORMAT_RGB);
  std::vector<std::uint8_t> rgb(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr) != 0);
  return {static_cast<int>(image.width), static_cast<int>(image.height), rgb};
}

}  // namespace

TEST_CASE("a PNG file decodes to the pixels it was made from", "[picture]") {
  struct Size {
    int width, height;
  };
  std::minstd_rand random(7);
  for (const Size size : {Size{1, 1}, Size{5, 3}, Size{301, 200}}) {
    for (const int colors : {1, 3, 256}) {
      CAPTURE(size.width, size.height, colors);
      std::vector<std::uint8_t> rgb(static_cast<std::size_t>(size.width) * size.height * 3);
      for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random() % colors);
      const Decoded read = decoded(runner::core::png(rgb, size.width, size.height));
      CHECK(read.width == size.width);
      CHECK(read.height == size.height);
      CHECK(read.rgb == rgb);
    }
  }
}

TEST_CASE("a sheet of one colour is a small file", "[picture]") {
  CHECK(runner::core::png(std::vector<std::uint8_t>(1000 * 1000 * 3, 255), 1000, 1000).size() < 10'000);
}

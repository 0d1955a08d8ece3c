#include "runner/core/picture/png.h"

#include <png.h>

#include "runner/core/error.h"

namespace runner::core {

std::string png(const std::vector<std::uint8_t>& rgb, int width, int height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t bytes = file.size();
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, rgb.data(), 0, nullptr) == 0) {
    throw RunError("cannot create a PNG file of " + std::to_string(width) + " x " + std::to_string(height) +
                   " pixels: " + image.message);
  }
  file.resize(bytes);
  return file;
}

}  // namespace runner::core

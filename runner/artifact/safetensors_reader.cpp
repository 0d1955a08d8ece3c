#include <string_view>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/io/mapped_file.h"
#include "runner/artifact/safetensors_header.h"

namespace runner::artifact {
namespace {

class Reader final : public TensorList {
 public:
  explicit Reader(const std::string& path) : file_(path, "a safetensors file") {
    const std::string_view file = file_.bytes();
    const auto bytes = static_cast<std::int64_t>(file.size());
    const std::int64_t header_bytes = safetensors_header_bytes(file, bytes, path);
    const std::int64_t before_data = kHeaderLengthBytes + header_bytes;
    SafetensorsHeader header = parse_safetensors_header(
        file.substr(kHeaderLengthBytes, static_cast<std::size_t>(header_bytes)), bytes - before_data, path);
    metadata_ = std::move(header.metadata);
    for (auto& [tensor, begin] : header.entries) {
      tensor.data = file.data() + before_data + begin;
      add(std::move(tensor));
    }
  }

  void let_go(const void* data, std::int64_t bytes) const override { file_.let_go(data, bytes); }
  std::optional<FilePlace> place_of(const void* data) const override { return file_.place_of(data); }

 private:
  MappedFile file_;
};

}  // namespace

core::Result<std::unique_ptr<SafetensorsReader>> SafetensorsReader::open(const std::string& path) {
  return attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Reader>(path); });
}

}  // namespace runner::artifact

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trackers {

/// Reads one message in protobuf's wire format, field by field, in file order. Borrows the bytes. Groups, which are
/// obsolete, end the reading like damage.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  struct Field {
    int number = 0;
    std::uint64_t bits = 0;  ///< of a number
    std::string_view bytes;  ///< of a text, a message, packed numbers
    bool is_bytes = false;

    std::int64_t integer() const { return static_cast<std::int64_t>(bits); }
    double real() const;   ///< of eight bytes
    float real32() const;  ///< of four
  };
  /// Nothing at the end, and when the bytes are damaged.
  std::optional<Field> next();
  bool damaged() const { return damaged_; }

 private:
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace trackers

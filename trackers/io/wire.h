#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trackers {

/// Writes one message in protobuf's wire format. LibTorch carries a libprotobuf of its own, and two of them in one
/// process clash, so the few messages that trackers need are encoded here. Fields are given by their number.
class Wire {
 public:
  Wire& integer(int field, std::int64_t value);
  Wire& real(int field, double value);
  Wire& real32(int field, float value);
  Wire& text(int field, std::string_view value);  ///< also bytes and embedded messages
  Wire& message(int field, const Wire& value) { return text(field, value.bytes_); }
  template <typename Range>
  Wire& packed_reals(int field, const Range& values) {
    Wire all;
    for (const double value : values) all.fixed64(value);
    return text(field, all.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void fixed64(double value);

  std::string bytes_;
};

}  // namespace trackers

#pragma once

#include <cstdint>
#include <string>

#include "runner/train/data/referenced_data.h"

namespace runner::train {

/// What figures are of.
struct ReferenceOrigin {
  std::string pairs;  ///< checksum of the pairs
  std::string model;  ///< checksum of the reference model's weights; "": not compared
};

/// Reads the figures of `size` pairs. RunError when the file is damaged or of another origin.
ReferenceFigures read_reference(const std::string& path, const ReferenceOrigin& origin, std::int64_t size);

/// Replaces the file; whenever the process ends, it is whole or not there. RunError as artifact::Io says.
void write_reference(const std::string& path, const ReferenceOrigin& origin, const ReferenceFigures& figures);

}  // namespace runner::train

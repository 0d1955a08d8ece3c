#pragma once

#include <cstdint>
#include <string>

#include "runner/train/data/referenced_data.h"

namespace runner::train {

/// Reads the figures of `size` pairs with that checksum. RunError when the file is damaged or of other pairs.
ReferenceFigures read_reference(const std::string& path, const std::string& checksum, std::int64_t size);

/// Replaces the file; whenever the process ends, it is whole or not there. RunError as artifact::Io says.
void write_reference(const std::string& path, const std::string& checksum, const ReferenceFigures& figures);

}  // namespace runner::train

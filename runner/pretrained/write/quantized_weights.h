#pragma once

#include <string>

#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/packed/pack.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace runner::pretrained {

/// A packed weight as the numbers that are computed with: F32 [O, I], or [I, O] where Transformers stores it turned.
/// The file has to be open until it is written.
WrittenTensor unpacked(const std::string& name, const PackedWeight& weight, bool is_turned);

/// What of a matrix is left once it was packed: F32, in its shape.
WrittenTensor rounded(const WrittenTensor& weight, const PackForm& form, bool is_turned);

}  // namespace runner::pretrained

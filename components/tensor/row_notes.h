#pragma once

#include "components/tensor/tensor_spec.h"

namespace components {

class TensorMap;

// What kernels for rows of unlike length have to know of a batch before they run. It is counted on the CPU: asked on a
// device, each kernel would wait for an answer.

/// [n + 1] int32: where documents begin among the real positions of all rows, and how many there are.
inline constexpr const char* kDocumentBegins = "document_begins";
/// Scalar int64, on the CPU: how long the longest of them is.
inline constexpr const char* kLongestDocument = "longest_document";
/// [m] int64: the real positions, counted over all rows; absent where all are.
inline constexpr const char* kRealPlaces = "real_places";

// What the first block of a stack tells the others on the CPU where it has left the padding of a batch out: their
// stream is then one row of all real positions, [1, N, C] in place of [B, T, C].

/// [B + 1] int64: where each text begins in that row, and its length.
inline constexpr const char* kTextBegins = "text_begins";
/// [N] int64: the place of each of its positions among the B * T of the batch.
inline constexpr const char* kTextPlaces = "text_places";

inline constexpr const char* kRowNotes[] = {kDocumentBegins, kLongestDocument, kRealPlaces, kTextBegins, kTextPlaces};

/// Adds them to a batch on the CPU that has kPositions of rows with several documents, or a kAttentionMask with padding
/// before what is real. Nothing where it has neither, or padding in the middle of a document, where it looks at
/// what is real before it.
/// `one_shape`: the same tensors of the same shapes for every batch of its shape, as a captured graph needs them; none
/// where it has a mask.
void note_rows(TensorMap& batch, bool one_shape = false);

}  // namespace components

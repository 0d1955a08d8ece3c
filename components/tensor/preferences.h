#pragma once

namespace components {

// Batches of preference pairs. A row of the input holds the chosen sequence and behind it the rejected one, each prompt
// and completion; kPositions restarts at the second, so that it does not see the first. Targets in prompts are
// kPadTarget.

/// [B] int64: where in its row the rejected sequence begins.
inline constexpr const char* kRejectedAt = "rejected_at";

/// [B] bool, of single labelled records: whether the completion is a desirable one. The chosen sequence of such a row
/// is the record, and the rejected one its prompt with the completion of another record.
inline constexpr const char* kDesirable = "desirable";

// [B] float32: the logarithmic probability of the chosen, or rejected, completion by the reference model: the sum over
// its tokens. The training adds them to the batches of a data set.
inline constexpr const char* kReferenceChosen = "reference_chosen";
inline constexpr const char* kReferenceRejected = "reference_rejected";

}  // namespace components

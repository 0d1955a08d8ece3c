#pragma once

namespace components {

/// [B, K] int64: where in its row each of the K texts of a record begins, in order. kPositions restarts at each of
/// them, so that none sees another.
inline constexpr const char* kTextsAt = "texts_at";

}  // namespace components

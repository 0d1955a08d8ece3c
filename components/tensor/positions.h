#pragma once

namespace components {

/// [B, T] int64: how far each id of the input stands from the beginning of its document; 0 begins one, which sees
/// nothing of those before it in the row. The numbers continue over padding.
inline constexpr const char* kPositions = "position_ids";

}  // namespace components

#pragma once

namespace components {

// What the model of `teacher` leaves for a loss that compares each output with its: as kOutput, or kHidden and
// kProjection, of the same batch. The training adds them to a batch before the loss is asked.
inline constexpr const char* kTeacherOutput = "teacher_output";
inline constexpr const char* kTeacherHidden = "teacher_hidden";
inline constexpr const char* kTeacherProjection = "teacher_projection";

}  // namespace components

#pragma once

#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/picture/canvas.h"

namespace components::callback {

/// A picture and the two lines below it.
struct CaptionedPicture {
  at::Tensor pixels_CHW;  ///< float32 in any range: all pictures of a grid share one
  std::string first_line, second_line;
  bool is_wrong = false;  ///< the second line is highlighted
};

/// Pictures of any size in rows from the left. One channel is grey, three are red, green and blue; of others the mean.
runner::core::Canvas picture_grid(const std::vector<CaptionedPicture>& pictures);

}  // namespace components::callback

#pragma once

/// A callback of the training loop; Canvas is what it draws images on.

#include "components/callback/callback.h"
#include "components/tensor/tensors.h"
#include "runner/core/picture/canvas.h"

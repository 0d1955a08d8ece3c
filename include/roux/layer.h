#pragma once

/// A layer of the model `sequential`.

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"

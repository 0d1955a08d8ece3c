#pragma once

/// A model: an ordered list of blocks.

#include "components/block/basic_block.h"
#include "components/model/model.h"
#include "components/tensor/tensors.h"

#pragma once

/// A model: an ordered list of blocks, and the parts that blocks are made of.

#include "components/block/basic_block.h"
#include "components/model/model.h"
#include "components/part/attention.h"
#include "components/part/embedding.h"
#include "components/part/mlp.h"
#include "components/part/norm.h"
#include "components/tensor/tensors.h"

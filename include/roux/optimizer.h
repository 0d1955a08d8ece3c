#pragma once

/// An optimizer; GroupedOptimizer keeps groups, rates, buffers and saved state.

#include "components/optimizer/grouped.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"

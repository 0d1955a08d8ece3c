#pragma once

/// A loss.

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"

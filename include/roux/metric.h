#pragma once

/// A metric of an evaluation.

#include "components/metric/metric.h"
#include "components/tensor/tensors.h"

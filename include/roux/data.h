#pragma once

/// A data set; Rows is one that is a table in memory.

#include "components/data/data.h"
#include "components/data/rows.h"
#include "components/tensor/tensors.h"

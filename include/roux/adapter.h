#pragma once

/// What is trained beside a frozen model, as terms of its linear layers.

#include "components/adapter/adapter.h"
#include "components/part/linear.h"

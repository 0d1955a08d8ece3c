#pragma once

/// What every component meets: the recipe's tree with its locations, diagnostics, errors, units, saved state.

#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/core/state.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

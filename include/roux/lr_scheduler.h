#pragma once

/// A learning-rate schedule.

#include "components/lr_scheduler/lr_scheduler.h"

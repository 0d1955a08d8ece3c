#pragma once

/* A tracker in C, as a shared object. */

#include "trackers/plugin_abi.h"

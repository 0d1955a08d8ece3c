// Precompiled once for what holds or hands on tensors and calls no operation of LibTorch.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "runner/cmake/std_pch.h"

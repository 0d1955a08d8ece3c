// Precompiled once for what calls operations of LibTorch. Each further operation costs every file of it a tenth of a
// second, called or not, so here is what all of them include, and no more.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/variable.h>

#include "runner/cmake/tensor_pch.h"

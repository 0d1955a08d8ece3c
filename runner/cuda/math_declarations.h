#pragma once

// <ProcessGroupNCCL.hpp> names the types of CUDA's libraries for linear algebra, and needs nothing of them. Their
// headers come with a gigabyte of libraries, which compiling and linking can do without: the headers that it names are
// empty files, made by the build (runner/cmake/dependencies.cmake).

using cublasHandle_t = struct cublasContext*;
using cublasLtHandle_t = struct cublasLtContext*;
using cusparseHandle_t = struct cusparseContext*;
using cusolverDnHandle_t = struct cusolverDnContext*;
enum cublasStatus_t : int;
enum cusolverStatus_t : int;
enum cusparseStatus_t : int;

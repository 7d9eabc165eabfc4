// A compiler as a load: like a build, one short process after another.
#pragma once

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Compiles a small generated C file. No file is created in any directory. Move-only.
class Compiler {
 public:
  /// Errors: system_error.
  static Result<Compiler> create();
  /// Runs cc(1) on the calling thread's processors and blocks until it ends: some 25 ms. Errors: not_supported if there
  /// is no cc(1) or it fails; call_aborted.
  Status compile() const;

 private:
  explicit Compiler(UniqueFd source) noexcept : source_(std::move(source)) {}
  UniqueFd source_;
};

}  // namespace lrpc::bench

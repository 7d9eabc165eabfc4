// A compiler as a load: what a build does, one short process after the other.
#pragma once

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Compiles a small C file that it makes up. Nothing of that is in any directory. Move-only.
class Compiler {
 public:
  /// Errors: system_error.
  static Result<Compiler> create();
  /// By cc(1), on the processors of the calling thread, which waits: some 25 ms. Errors: not_supported: there is no
  /// cc(1), or it cannot; call_aborted.
  Status compile() const;

 private:
  explicit Compiler(UniqueFd source) noexcept : source_(std::move(source)) {}
  UniqueFd source_;
};

}  // namespace lrpc::bench
